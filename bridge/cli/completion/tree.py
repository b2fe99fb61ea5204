"""The commands with their options and arguments, as the parser knows them."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.cli.parser import Parser

FILE, WORD = "file", "word"


@dataclass(frozen=True, slots=True)
class Option:
    """An option; `value` is None if it takes none, else FILE or WORD."""

    names: tuple[str, ...]
    about: str
    value: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command under its path, such as `dead-letters list`; `value` is its first argument."""

    path: tuple[str, ...]
    about: str
    options: tuple[Option, ...] = ()
    acts: tuple["Command", ...] = ()
    value: str | None = None
    choices: tuple[str, ...] = ()

    def each(self) -> Iterator["Command"]:
        """This command and all below it."""
        yield self
        for act in self.acts:
            yield from act.each()


def tree(parser: Parser, path: Sequence[str] = (), about: str = "") -> Command:
    actions = parser.listed
    positional = next((one for one in actions if _is_argument(one)), None)
    helps = parser.help_of_acts
    return Command(
        path=tuple(path),
        about=about,
        options=tuple(_option(one) for one in actions if one.option_strings),
        acts=tuple(
            tree(below, (*path, name), _plain(helps[name]))
            for name, below in parser.acts.items()
            if helps.get(name)  # what no person types has no help
        ),
        value=_value(positional) if positional else None,
        choices=_choices(positional) if positional else (),
    )


def _is_argument(action: argparse.Action) -> bool:
    return not action.option_strings and action.nargs != argparse.PARSER


def _option(action: argparse.Action) -> Option:
    takes = action.nargs != 0
    return Option(
        names=tuple(action.option_strings),
        about=_plain(action.help or ""),
        value=_value(action) if takes else None,
        choices=_choices(action),
    )


def _value(action: argparse.Action) -> str:
    named = action.type is Path or "FILE" in str(action.metavar)
    return FILE if named else WORD


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(one) for one in action.choices or ())


def _plain(text: str) -> str:
    """A line without what shells could take for their own."""
    return "".join(letter for letter in text if letter not in "'\"`$\\[]{}:").replace("%%", "%")
