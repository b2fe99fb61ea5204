"""Completion for zsh."""

from bridge.cli.completion.tree import FILE, Command, Option

_SCRIPT = """#compdef seb scheduled-events-bridge
# Completion of seb for zsh. Load it with: source <(seb completion zsh)
%(functions)s
if [ "$funcstack[1]" = "_seb" ]; then
    _seb "$@"
else
    compdef _seb seb scheduled-events-bridge
fi
"""
_GROUP = """%(name)s() {
    local line state
    local -a names
    _arguments -C %(options)s '1: :->name' '*:: :->rest'
    case $state in
        name)
            names=(%(names)s)
            _describe command names ;;
        rest)
            case $line[1] in
%(cases)s
            esac ;;
    esac
}
"""
_LEAF = """%(name)s() {
    _arguments %(options)s %(values)s
}
"""


def script(root: Command) -> str:
    functions = "".join(_function(one) for one in root.each())
    return _SCRIPT % {"functions": functions}


def _name(command: Command) -> str:
    return "_".join(("_seb", *command.path)).replace("-", "_")


def _function(command: Command) -> str:
    options = " ".join(_option(one) for one in command.options)
    if not command.acts:
        values = f"'*: :{_values(command.value, command.choices)}'" if command.value else ""
        return _LEAF % {"name": _name(command), "options": options, "values": values}
    names = " ".join(f"'{act.path[-1]}:{_plain(act.about)}'" for act in command.acts)
    cases = "\n".join(f"                {act.path[-1]}) {_name(act)} ;;" for act in command.acts)
    return _GROUP % {
        "name": _name(command), "options": options, "names": names, "cases": cases,
    }  # fmt: skip


def _option(option: Option) -> str:
    """Each spelling by itself: zsh then completes both."""
    value = f": :{_values(option.value, option.choices)}" if option.value else ""
    return " ".join(f"'{name}[{_plain(option.about)}]{value}'" for name in option.names)


def _values(value: str | None, choices: tuple[str, ...]) -> str:
    if choices:
        return f"({' '.join(choices)})"
    return "_files" if value == FILE else " "


def _plain(text: str) -> str:
    return text.replace("'", "").replace(":", "").replace("[", "(").replace("]", ")")
