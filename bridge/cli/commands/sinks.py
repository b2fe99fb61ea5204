"""`seb sinks`: the delivery state of each sink; replays a sink, or resumes one that stopped."""

import argparse
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bridge.cli.shell import Ask, add_connection, talk, tell
from bridge.cli.text import age, as_json, table

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
                answer = await ask("POST", f"/api/v1/sinks/{quote(name, safe='')}/{act}")
                tell(as_json(answer) if args.json else said(answer))
                return 0
        found = await ask("GET", "/api/v1/sinks")
        tell(as_json(found) if args.json else many(found["sinks"], datetime.now(UTC)))
        return 0

    return talk(args, conversation)


def replayed(answer: dict[str, Any]) -> str:
    return f"{answer['sink']}: {answer['cloudEvents']} CloudEvents will be sent again.\n"


def resumed(answer: dict[str, Any]) -> str:
    said = "has resumed" if answer["resumed"] else "was not stopped"
    return f"{answer['sink']}: it {said}.\n"


def many(sinks: list[dict[str, Any]], now: datetime) -> str:
    return table(_HEADS, (_row(sink, now) for sink in sinks))


def _row(sink: dict[str, Any], now: datetime) -> tuple[object, ...]:
    return (
        sink["name"] if sink["required"] else f"{sink['name']} (best effort)",
        sink["type"],
        sink["state"],
        age(sink["since"], now),
        sink["waiting"],
        age(sink["oldest"], now),
        sink["delivered"],
        sink["dead"],
        sink["error"],
    )
