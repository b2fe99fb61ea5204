"""Completion for fish."""

from collections.abc import Iterator

from bridge.cli.completion.tree import FILE, Command, Option

_HEAD = """# Completion of seb for fish. Load it with: seb completion fish | source
complete -c seb -e
complete -c scheduled-events-bridge -e
complete -c scheduled-events-bridge -w seb
complete -c seb -f
"""


def script(root: Command) -> str:
    return _HEAD + "".join(f"{line}\n" for one in root.each() for line in _lines(one))


def _lines(command: Command) -> Iterator[str]:
    here = _condition(command)
    for act in command.acts:
        yield f"complete -c seb {here} -a {act.path[-1]} -d '{act.about}'"
    for word in command.choices:
        yield f"complete -c seb {here} -a {word}"
    if command.value == FILE:
        yield f"complete -c seb {here} -F"
    for option in command.options:
        yield f"complete -c seb {here} {_option(option)}"


def _condition(command: Command) -> str:
    """Only behind this command; behind none of those below it."""
    if not command.path:
        return "-n __fish_use_subcommand"
    tests = [f"__fish_seen_subcommand_from {name}" for name in command.path]
    if command.acts:
        below = " ".join(act.path[-1] for act in command.acts)
        tests.append(f"not __fish_seen_subcommand_from {below}")
    return f"-n '{'; and '.join(tests)}'"


def _option(option: Option) -> str:
    words = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    ]
    if option.choices:
        words.append(f"-x -a '{' '.join(option.choices)}'")
    elif option.value is not None:
        words.append("-r -F" if option.value == FILE else "-x")
    return " ".join((*words, f"-d '{option.about}'"))
