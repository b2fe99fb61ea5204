"""`seb watch`: prints what is pending, then every CloudEvent as it is recorded."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.event_line import EventText, is_own
from bridge.cli.shell import FAILED, Ask, add_connection, complain, talk, tell
from bridge.cli.stream import StreamAddress, stream

AGAIN = 1.0
"""Seconds between attempts to reach a bridge that does not answer."""
_ENDED = "The bridge ended the stream"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--json", action="store_true", help="print one CloudEvent per line")
    parser.add_argument("--own", action="store_true", help="only events that name this VM")
    parser.add_argument(
        "--strays",
        action="store_true",
        help="also votes from a bus that are malformed, or about events unknown here",
    )
    parser.add_argument(
        "--follow", action="store_true", help="reconnect when the bridge restarts, and miss nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Run until Ctrl-C, or without --follow until the bridge stops."""
    view = WatchView(as_json=args.json, own=args.own)

    async def conversation(ask: Ask) -> int:
        place = StreamAddress(strays=args.strays)
        return await Watch(ask, view, follow=args.follow, place=place).run()

    return talk(args, conversation)


@dataclass(slots=True)
class WatchView:
    """What to show, and how; an event shown as pending is not shown twice."""

    as_json: bool = False
    own: bool = False
    _color: bool = field(default_factory=sys.stdout.isatty)
    _shown: set[str] = field(default_factory=set)
    _followed: set[str] = field(default_factory=set)

    def pending(self, cloudevent: Mapping[str, Any]) -> None:
        self.show(cloudevent)
        self._shown.add(cloudevent["id"])

    def show(self, cloudevent: Mapping[str, Any]) -> None:
        if cloudevent["id"] in self._shown or not self._wanted(cloudevent):
            return
        if self.as_json:
            text = json.dumps(cloudevent, separators=(",", ":")) + "\n"
        else:
            text = EventText(cloudevent).line(datetime.now(UTC), color=self._color)
        tell(text)
        sys.stdout.flush()

    def _wanted(self, cloudevent: Mapping[str, Any]) -> bool:
        """Follow an event that named this VM to its end, even if it no longer names it."""
        if not self.own or cloudevent.get("stray"):
            return True
        subject = cloudevent.get("subject", "")
        if is_own(cloudevent):
            self._followed.add(subject)
        return subject in self._followed


@dataclass(slots=True)
class Watch:
    """Reads the stream, and reconnects when it breaks."""

    ask: Ask
    view: WatchView
    follow: bool = False
    place: StreamAddress = field(default_factory=StreamAddress)
    _begun: bool = False

    async def run(self) -> int:
        away = False
        while True:
            try:
                async with stream(self.ask, self.place) as news:
                    away = False
                    await self._read(news)
                why = _ENDED
            except (Unreachable, RequestRefused) as error:
                if not self.follow or (isinstance(error, RequestRefused) and error.status != 503):
                    raise
                why = str(error).removesuffix(".")
            if not self.follow:
                complain(f"{_ENDED}; with --follow, seb watch waits for it to come back.")
                return FAILED
            if not away:
                complain(f"{why}; waiting for it.")
            away = True
            await asyncio.sleep(AGAIN)

    async def _read(self, news: AsyncIterator[dict[str, Any]]) -> None:
        if not self._begun:
            await self._pending()
        self._begun = True
        async for cloudevent in news:
            self.view.show(cloudevent)

    async def _pending(self) -> None:
        """The latest published state of every pending event."""
        found = await self.ask("GET", "/api/v1/events?pending=true")
        for event in found["events"]:
            history = (await self.ask("GET", event["href"]))["history"]
            told = [row["cloudevent"] for row in history if "rank" in row["cloudevent"]["data"]]
            if told:
                self.view.pending(told[-1])
