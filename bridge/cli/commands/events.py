"""`seb events`: pending and past scheduled events, and the history of one."""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bridge.cli.client import RequestRefused
from bridge.cli.event_line import EventText
from bridge.cli.ids import ambiguous, matches, shortened
from bridge.cli.shell import Ask, add_connection, talk, tell
from bridge.cli.text import (
    as_json,
    clock,
    columns,
    names,
    pairs,
    printable,
    table,
    wrapped,
    yes_no,
)
from bridge.cli.voting.progress import lacking, progress
from bridge.cli.voting.prompt import Asking, is_interactive
from bridge.core.cloudevent import short_type

PATH = "/api/v1/events"
_HEADS = ("EVENT ID", "TYPE", "STATUS", "NOT BEFORE", "APPROVALS", "THIS VM", "RESOURCES")
_VOTES = ("APPROVER", "FOR", "SAID", "AT", "VERIFIED", "VIA", "REASON")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument(
        "--pending",
        action="store_true",
        help="only pending events; on a terminal, ask y/N for each",
    )
    parser.add_argument("--no-ask", action="store_true", help="only list, even on a terminal")
    parser.add_argument("--json", action="store_true", help="print JSON as the API returns it")
    parser.add_argument(
        "event_id", nargs="?", metavar="EVENT_ID", help="show the history of this event"
    )


def run(args: argparse.Namespace) -> int:
    shown: list[dict[str, Any]] = []

    async def conversation(ask: Ask) -> int:
        now = datetime.now(UTC)
        width = columns()
        if args.event_id is not None:
            found = await _find(ask, args.event_id)
            tell(as_json(found) if args.json else one(found, now, width))
            return 0
        found = await ask("GET", PATH + ("?pending=true" if args.pending else ""))
        listed = found["events"]
        tell(as_json(found) if args.json else many(listed, now, width, pending=args.pending))
        shown.extend(found["events"])
        return 0

    code = talk(args, conversation)
    asks = args.pending and not args.no_ask and not args.json and is_interactive()
    return Asking(args).each(shown) or code if asks else code


async def _find(ask: Ask, given: str) -> dict[str, Any]:
    """The event with this id, else the only one whose id begins like this."""
    try:
        return dict(await ask("GET", f"{PATH}/{quote(given, safe='')}"))
    except RequestRefused as error:
        if error.status != 404:
            raise
        found = matches(given, (await ask("GET", PATH))["events"])
        if len(found) > 1:
            raise RequestRefused(404, f"{ambiguous(given, found)}.") from None
        if not found:
            raise
    return dict(await ask("GET", found[0]["href"]))


def many(
    events: list[dict[str, Any]], now: datetime, width: int | None = None, *, pending: bool
) -> str:
    """A table; a terminal of this *width* gets short ids and times, and one of several names."""
    if not events:
        return f"There are no {'pending ' if pending else ''}scheduled events.\n"
    if width is None:
        return table(_HEADS, (_row(event, now) for event in events))
    short = shortened(event["eventId"] for event in events)
    rows = (
        (
            short[event["eventId"]],
            *_row(event, now, short=True)[1:-1],
            names(event["resources"], 1),
        )
        for event in events
    )
    return table(_HEADS, rows, width)


def _row(event: dict[str, Any], now: datetime, *, short: bool = False) -> tuple[str, ...]:
    return (
        event["eventId"],
        event["eventType"],
        _status(event),
        clock(event["notBefore"], now, short=short),
        progress(event),
        yes_no(event["affected"]),
        names(event["resources"]),
    )


def _status(event: dict[str, Any]) -> str:
    marks = [word for word in ("inferred", "drill") if event[word]]
    return f"{event['status']} ({', '.join(marks)})" if marks else str(event["status"])


def one(event: dict[str, Any], now: datetime, width: int | None = None) -> str:
    missing = lacking(event)
    head = pairs(
        (
            ("event", event["eventId"]),
            ("type", event["eventType"]),
            ("status", _status(event)),
            ("not before", clock(event["notBefore"], now)),
            ("approve by", clock(event["approveBy"], now)),
            ("approvals", progress(event)),
            *((("missing", missing),) if missing else ()),
            ("this VM", yes_no(event["affected"])),
            ("resources", ", ".join(event["resources"])),
            ("announced by", event["eventSource"]),
            ("description", event["description"]),
        ),
        width,
    )
    votes = f"\n{table(_VOTES, (_vote(vote, now) for vote in event['votes']), width, notes=True)}"
    story = "".join(line for row in event["history"] for line in _told(row, now, width))
    return head + (votes if event["votes"] else "") + story


def _vote(vote: dict[str, Any], now: datetime) -> tuple[object, ...]:
    return (
        vote["approver"],
        vote["resource"] or "all",
        vote["decision"],
        clock(vote["at"], now),
        yes_no(vote["verified"]),
        vote["via"],
        vote["reason"],
    )


def _told(row: dict[str, Any], now: datetime, width: int | None) -> Iterator[str]:
    """A CloudEvent, with its content and its delivery to each sink below."""
    event = row["cloudevent"]
    kind = short_type(str(event["type"])) if width else event["type"]
    yield f"\n{clock(event['time'], now)}  {printable(kind)}  {printable(event['id'])}\n"
    yield wrapped(EventText(event).remark(now), width, indent=4)
    for delivery in row["deliveries"]:
        error = f": {delivery['error']}" if delivery["error"] else ""
        tries = f" at attempt {delivery['attempts']}" if delivery["attempts"] > 1 else ""
        said = delivery["sink"] + " " + delivery["outcome"] + tries + error
        yield wrapped(printable(said), width, indent=4)
