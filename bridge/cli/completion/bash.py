"""Completion for bash 4 and later, without the package bash-completion."""

from collections.abc import Iterator, Sequence

from bridge.cli.completion.tree import FILE, WORD, Command

_SCRIPT = """# Completion of seb for bash. Load it with: source <(seb completion bash)
_seb() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path='' at=1
    COMPREPLY=()
    while [ "$at" -lt "$COMP_CWORD" ]; do
        case "$path ${COMP_WORDS[at]}" in
            %(paths)s) path="$path ${COMP_WORDS[at]}" ;;
        esac
        at=$((at + 1))
    done
    case "$path,$before" in
%(values)s
    esac
    case "$path" in
%(words)s
    esac
}
complete -o filenames -F _seb seb scheduled-events-bridge
"""


_WORDS = """        "%s")
            case "$word" in
                -*) %s ;;
                *) %s ;;
            esac ;;"""


def script(root: Command) -> str:
    commands = list(root.each())
    return _SCRIPT % {
        "paths": "|".join(f'"{_path(one)}"' for one in commands if one.path),
        "values": "\n".join(line for one in commands for line in _values(one)),
        "words": "\n".join(_words(one) for one in commands),
    }


def _path(command: Command) -> str:
    return "".join(f" {name}" for name in command.path)


def _values(command: Command) -> Iterator[str]:
    """What follows an option that takes a value."""
    for option in command.options:
        if option.value is not None:
            when = "|".join(f'"{_path(command)},{name}"' for name in option.names)
            yield f"        {when}) {_reply(option.value, option.choices)}; return ;;"


def _words(command: Command) -> str:
    options = _reply(WORD, [name for option in command.options for name in option.names])
    others = [act.path[-1] for act in command.acts] or command.choices
    return _WORDS % (_path(command), options, _reply(command.value, others))


def _reply(value: str | None, words: Sequence[str]) -> str:
    if words:
        return f"""mapfile -t COMPREPLY < <(compgen -W '{" ".join(words)}' -- "$word")"""
    return 'mapfile -t COMPREPLY < <(compgen -f -- "$word")' if value == FILE else "COMPREPLY=()"
