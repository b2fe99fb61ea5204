"""`seb dead-letters`: list, show, replay or drop what a sink refused for good."""

import argparse
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bridge.cli.client import RequestRefused
from bridge.cli.shell import FAILED, Ask, add_connection, complain, talk, tell
from bridge.cli.text import as_json, clock, pairs, table

_PATH = "/api/v1/dead-letters"
_HEADS = ("ID", "TYPE", "SUBJECT", "ATTEMPTS", "LAST ATTEMPT", "REASON")
_ACTS = {
    "replay": ("POST", "/replay", "will be sent again"),
    "drop": ("DELETE", "", "was dropped"),
}
_HELP = {"replay": "send them again", "drop": "delete them for good"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", required=True, metavar="list|show|replay|drop")
    listing = acts.add_parser(
        "list", allow_abbrev=False, help="list all dead letters, or those of one sink"
    )
    listing.add_argument("--sink", metavar="NAME")
    showing = acts.add_parser(
        "show", allow_abbrev=False, help="show dead letters with their CloudEvents"
    )
    showing.add_argument("ids", nargs="+", metavar="ID")
    for name in _ACTS:
        acting = acts.add_parser(name, allow_abbrev=False, help=_HELP[name])
        which = acting.add_mutually_exclusive_group(required=True)
        which.add_argument("ids", nargs="*", default=[], metavar="ID")
        which.add_argument("--all", action="store_true", help="every dead letter")
        which.add_argument("--sink", metavar="NAME", help="every dead letter of this sink")
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
    tell(as_json(found) if args.json else many(found["deadLetters"], datetime.now(UTC)))
    if found["more"]:
        complain("There are more. This list is limited.")
    return 0


async def _show(ask: Ask, args: argparse.Namespace) -> int:
    for letter_id in args.ids:
        found = await ask("GET", _path(letter_id))
        tell(as_json(found) if args.json else one(found, datetime.now(UTC)))
    return 0


async def _act(ask: Ask, args: argparse.Namespace) -> int:
    """Act on one after the other; one that is already gone does not stop the rest."""
    method, ending, done = _ACTS[args.act]
    ids, more = args.ids, False
    if not ids:
        found = await ask("GET", _listed(args.sink))
        ids, more = [letter["id"] for letter in found["deadLetters"]], found["more"]
    failed = False
    for letter_id in ids:
        try:
            answer = await ask(method, _path(letter_id) + ending)
        except RequestRefused as error:
            complain(str(error))
            failed = True
        else:
            tell(as_json(answer) if args.json else f"{letter_id} {done}.\n")
    if more:
        complain("There are more: run the command again.")
    return FAILED if failed or more else 0


def _path(letter_id: str) -> str:
    return f"{_PATH}/{quote(letter_id, safe=':')}"


def _listed(sink: str | None) -> str:
    return _PATH if sink is None else f"{_PATH}?sink={quote(sink, safe='')}"


def many(letters: list[dict[str, Any]], now: datetime) -> str:
    if not letters:
        return "There are no dead letters.\n"
    return table(_HEADS, (_row(letter, now) for letter in letters))


def _row(letter: dict[str, Any], now: datetime) -> tuple[object, ...]:
    return (
        letter["id"],
        letter["type"],
        letter["subject"],
        letter["attempts"],
        clock(letter["lastAttempt"], now),
        _short(letter["reason"]),
    )


def _short(reason: str) -> str:
    """The beginning, and the end, where a program says why it failed; `show` prints all of it."""
    return reason if len(reason) <= 300 else f"{reason[:60]} … {reason[-200:]}"


def one(letter: dict[str, Any], now: datetime) -> str:
    head = pairs(
        (
            ("dead letter", letter["id"]),
            ("sink", letter["sink"]),
            ("attempts", letter["attempts"]),
            ("first", clock(letter["firstAttempt"], now)),
            ("last", clock(letter["lastAttempt"], now)),
            ("reason", letter["reason"]),
        )
    )
    return head + as_json(letter["cloudevent"])
