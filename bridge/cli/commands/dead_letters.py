"""`seb dead-letters`: list, show, replay or drop what a sink refused for good."""

import argparse
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bridge.cli.client import RequestRefused
from bridge.cli.commands import sinks
from bridge.cli.ids import shortened
from bridge.cli.shell import FAILED, Ask, add_connection, complain, talk, tell
from bridge.cli.text import as_json, clock, columns, pairs, printable, table
from bridge.cli.voting.prompt import is_interactive
from bridge.core.cloudevent import short_type

_PATH = "/api/v1/dead-letters"
_HEADS = ("ID", "TYPE", "SUBJECT", "ATTEMPTS", "LAST ATTEMPT", "REASON")
_ACTS = {
    "replay": ("POST", "/replay", "will be sent again"),
    "drop": ("DELETE", "", "was dropped"),
}
_HELP = {"replay": "send them again", "drop": "delete them for good"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", required=True, metavar="list|show|replay|drop")
    listing = acts.add_parser("list", help="list all dead letters, or those of one sink")
    listing.add_argument("--sink", metavar="NAME", help="only dead letters of this sink")
    showing = acts.add_parser("show", help="show dead letters with their CloudEvents")
    showing.add_argument("ids", nargs="+", metavar="ID")
    for name in _ACTS:
        acting = acts.add_parser(name, help=_HELP[name])
        which = acting.add_mutually_exclusive_group(required=True)
        which.add_argument("ids", nargs="*", default=[], metavar="ID")
        which.add_argument("--all", action="store_true", help="every dead letter")
        which.add_argument("--sink", metavar="NAME", help="every dead letter of this sink")
        if name == "drop":
            acting.add_argument("--yes", action="store_true", help="do not ask first")
    for each in acts.choices.values():
        add_connection(each)
        each.add_argument("--json", action="store_true", help="print JSON as the API returns it")


def run(args: argparse.Namespace) -> int:
    async def conversation(ask: Ask) -> int:
        if args.act == "list":
            return await _list(ask, args)
        if args.act == "show":
            return await _show(ask, args)
        return await _act(ask, args)

    return talk(args, conversation)


async def _list(ask: Ask, args: argparse.Namespace) -> int:
    found = await ask("GET", _listed(args.sink))
    listed = found["deadLetters"]
    if not listed and args.sink is not None:
        await _check_name(ask, args.sink)
    tell(as_json(found) if args.json else many(listed, datetime.now(UTC), columns()))
    if found["more"]:
        complain("There are more. This list is limited.")
    return 0


async def _check_name(ask: Ask, name: str) -> None:
    """Refuse the name of a sink that does not exist; a removed sink may still have letters."""
    if name not in [sink["name"] for sink in (await ask("GET", sinks.PATH))["sinks"]]:
        raise RequestRefused(404, await sinks.no_sink(ask, name))


async def _show(ask: Ask, args: argparse.Namespace) -> int:
    found = [await ask("GET", _path(letter_id)) for letter_id in args.ids]
    if args.json:
        tell(as_json({"deadLetters": found}))
    else:
        tell("\n".join(one(letter, datetime.now(UTC), columns()) for letter in found))
    return 0


async def _act(ask: Ask, args: argparse.Namespace) -> int:
    """Act on one after the other; one that is already gone does not stop the rest."""
    ids, more = args.ids, False
    if not ids:
        found = await ask("GET", _listed(args.sink))
        ids, more = [letter["id"] for letter in found["deadLetters"]], found["more"]
        if not ids and args.sink is not None:
            await _check_name(ask, args.sink)
        if args.act == "drop" and ids and not args.yes and not _confirmed(ids, more=more):
            return FAILED
    answers = [answer async for answer in _each(ask, args, ids)]
    if args.json:
        tell(as_json({"deadLetters": answers}))
    elif not ids:
        tell("There are no dead letters.\n")
    if more:
        complain("There are more: run the command again.")
    return FAILED if len(answers) < len(ids) or more else 0


def _confirmed(ids: Sequence[str], *, more: bool) -> bool:
    """Ask before everything is dropped. Without somebody to ask, only --yes drops."""
    if not is_interactive():
        complain("This drops dead letters for good: give --yes, or their IDs.")
        return False
    count = f"the first {len(ids)}" if more else str(len(ids))
    said = "dead letter" if len(ids) == 1 else "dead letters"
    try:
        return input(f"Drop {count} {said} for good? y/N ").strip().casefold() in {"y", "yes"}
    except EOFError:
        tell("\n")
        return False


async def _each(
    ask: Ask, args: argparse.Namespace, ids: Sequence[str]
) -> AsyncGenerator[dict[str, Any]]:
    method, ending, done = _ACTS[args.act]
    for letter_id in ids:
        try:
            yield await ask(method, _path(letter_id) + ending)
        except RequestRefused as error:
            complain(str(error))
            continue
        if not args.json:
            tell(f"{printable(letter_id)} {done}.\n")


def _path(letter_id: str) -> str:
    return f"{_PATH}/{quote(letter_id, safe=':')}"


def _listed(sink: str | None) -> str:
    return _PATH if sink is None else f"{_PATH}?sink={quote(sink, safe='')}"


def many(letters: list[dict[str, Any]], now: datetime, width: int | None = None) -> str:
    if not letters:
        return "There are no dead letters.\n"
    return table(_HEADS, (_row(letter, now, width) for letter in letters), width, notes=True)


def _row(letter: dict[str, Any], now: datetime, width: int | None) -> tuple[object, ...]:
    kind, subject = letter["type"], letter["subject"]
    return (
        letter["id"],
        short_type(kind) if width else kind,
        shortened([subject])[subject] if width else subject,
        letter["attempts"],
        clock(letter["lastAttempt"], now),
        _short(letter["reason"]),
    )


def _short(reason: str) -> str:
    """The beginning, and the end, where a program says why it failed; `show` prints all of it."""
    return reason if len(reason) <= 300 else f"{reason[:60]} … {reason[-200:]}"


def one(letter: dict[str, Any], now: datetime, width: int | None = None) -> str:
    head = pairs(
        (
            ("dead letter", letter["id"]),
            ("sink", letter["sink"]),
            ("attempts", letter["attempts"]),
            ("first", clock(letter["firstAttempt"], now)),
            ("last", clock(letter["lastAttempt"], now)),
            ("reason", letter["reason"]),
        ),
        width,
    )
    return head + as_json(letter["cloudevent"])
