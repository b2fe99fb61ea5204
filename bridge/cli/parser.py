"""Reads the words after `seb`; for a wrong word, names the nearest right one."""

import argparse
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

_VALUED = frozenset({"-c", "--config", "--socket", "--url", "--token"})
"""Options of many commands that take a value, which may be the name of a command."""
_INSTEAD = frozenset({"-h", "--help", "--version"})


class Parser(argparse.ArgumentParser):
    """Takes options before or after a command, and refuses what is wrong in one sentence."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override]  # one of several forms, the one that is used
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        words = list(args or ())
        acts = self.acts
        words = command_first(words, acts.keys()) if acts else words
        name = next(iter(words), "-")
        if acts and not name.startswith("-") and name not in acts:
            self.error(unknown("command", name, acts))
        if name not in acts:
            self._refuse_unknown_options(words)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return found, rest

    @property
    def acts(self) -> dict[str, "Parser"]:
        """The commands below this one, by name."""
        found: Any = next((one for one in self._actions if one.nargs == argparse.PARSER), None)
        return {} if found is None else dict(found.choices)

    @property
    def listed(self) -> list[argparse.Action]:
        """Its options and arguments, in the order in which they were added."""
        return list(self._actions)

    @property
    def help_of_acts(self) -> dict[str, str]:
        """What each command below this one does, in a few words."""
        found = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001  argparse has no public name for it
        return {each.dest: each.help or "" for one in found for each in one._get_subactions()}  # noqa: SLF001  as above

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else "."
        self.exit(2, f"seb: {message}{stop} See {self.prog} --help.\n")

    def _refuse_unknown_options(self, words: Sequence[str]) -> None:
        """Do it first: what argparse finds missing is most likely what was misspelled."""
        given = words[: words.index("--")] if "--" in words else words
        for word in given:
            name = word.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                known = [one for one in self._option_string_actions if one.startswith("--")]
                self.error(unknown("option", name, known))


def command_first(words: Sequence[str], names: AbstractSet[str]) -> list[str]:
    """The same words, with the options that stand before the command moved behind all others."""
    at = _command_at(words, names)
    if not at:
        return list(words)
    before, after = list(words[:at]), list(words[at:])
    end = after.index("--") if "--" in after else len(after)
    return [*after[:end], *before, *after[end:]]


def _command_at(words: Sequence[str], names: AbstractSet[str]) -> int | None:
    """Where the command stands. A word behind an unknown option may also be its value."""
    value = False
    for at, word in enumerate(words):
        if word in _INSTEAD and not value:
            return None
        if value:
            value = False
        elif word.startswith("-"):
            value = word in _VALUED
        elif word in names or not (at and words[at - 1].startswith("-")) or names.isdisjoint(words):
            return at
    return None


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """`unknown option '--onc'; did you mean --once?`."""
    near = nearest(word, known)
    return f"unknown {what} {word!r}" + (f"; did you mean {near}?" if near else "")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like a misspelled one."""
    from difflib import get_close_matches  # noqa: PLC0415  only a mistake needs it

    spelled = {one.casefold(): one for one in known}
    found = get_close_matches(word.casefold(), spelled, n=1)
    return spelled[found[0]] if found else None
