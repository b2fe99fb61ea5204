"""`seb sinks`: the delivery state of each sink; replays a sink, or resumes one that stopped."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bridge.cli.client import RequestRefused
from bridge.cli.parser import nearest
from bridge.cli.shell import Ask, add_connection, talk, tell
from bridge.cli.text import age, as_json, columns, cut, printable, table

PATH = "/api/v1/sinks"
EVERY = 0.5

_HEADS = (
    "SINK",
    "TYPE",
    "STATE",
    "SINCE",
    "WAITING",
    "OLDEST",
    "DELIVERED",
    "DEAD",
    "LAST ERROR",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--json", action="store_true", help="print JSON as the API returns it")
    act = parser.add_mutually_exclusive_group()
    act.add_argument(
        "--replay", metavar="NAME", help="send this sink everything in the journal again"
    )
    act.add_argument("--resume", metavar="NAME", help="resume this sink after it has stopped")


def run(args: argparse.Namespace) -> int:
    async def conversation(ask: Ask) -> int:
        for name, act, said in (
            (args.replay, "replay", replayed),
            (args.resume, "resume", resumed),
        ):
            if name is not None:
                answer = await _act(ask, name, act)
                tell(as_json(answer) if args.json else said(answer))
                if act == "replay" and not args.json and sys.stderr.isatty():
                    await follow(ask, name, answer["cloudEvents"])
                return 0
        found = await ask("GET", PATH)
        tell(as_json(found) if args.json else many(found["sinks"], datetime.now(UTC), columns()))
        return 0

    return talk(args, conversation)


async def _act(ask: Ask, name: str, act: str) -> dict[str, Any]:
    try:
        return dict(await ask("POST", f"{PATH}/{quote(name, safe='')}/{act}"))
    except RequestRefused as error:
        if error.status != 404:
            raise
        raise RequestRefused(404, await no_sink(ask, name)) from None


async def no_sink(ask: Ask, name: str) -> str:
    """Say that there is no such sink, and which one may be meant."""
    known = [sink["name"] for sink in (await ask("GET", PATH))["sinks"]]
    near = nearest(name, known)
    return f"There is no sink {name!r}; " + (
        f"did you mean {near}?" if near else f"the sinks are {', '.join(known)}."
    )


async def follow(ask: Ask, name: str, total: int) -> None:
    """Show on the terminal how much of a replay is left, until nothing is.

    Ctrl-C ends the view; the bridge continues.
    """
    while True:
        sink = next(one for one in (await ask("GET", PATH))["sinks"] if one["name"] == name)
        left = min(sink["waiting"], total)
        why = f"  {sink['state']}: {sink['error']}" if sink["error"] else ""
        line = printable(f"{total - left} of {total} sent{why}")
        sys.stderr.write(f"\r{cut(line, (columns() or 80) - 1)}\x1b[K")
        sys.stderr.flush()
        if not left or sink["state"] == "stopped":
            sys.stderr.write("\n")
            return
        await asyncio.sleep(EVERY)


def replayed(answer: dict[str, Any]) -> str:
    return f"{answer['sink']}: {answer['cloudEvents']} CloudEvents will be sent again.\n"


def resumed(answer: dict[str, Any]) -> str:
    said = "has resumed" if answer["resumed"] else "was not stopped"
    return f"{answer['sink']}: it {said}.\n"


def many(sinks: list[dict[str, Any]], now: datetime, width: int | None = None) -> str:
    """A table; a terminal of this *width* gets errors below the row of their sink."""
    return table(_HEADS, (_row(sink, now, width) for sink in sinks), width, notes=True)


def _row(sink: dict[str, Any], now: datetime, width: int | None) -> tuple[object, ...]:
    mark = None if sink["required"] else "best effort"
    said = "; ".join(one for one in (mark, sink["error"]) if one)
    return (
        f"{sink['name']} ({mark})" if mark and width is None else sink["name"],
        sink["type"],
        sink["state"],
        age(sink["since"], now),
        sink["waiting"],
        age(sink["oldest"], now),
        sink["delivered"],
        sink["dead"],
        said if width else sink["error"],
    )
