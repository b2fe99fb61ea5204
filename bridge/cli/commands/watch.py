"""`seb watch`: a live view on a terminal; elsewhere, a line for every CloudEvent."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.event_line import EventText, is_own
from bridge.cli.shell import FAILED, Ask, add_connection, complain, talk, tell
from bridge.cli.watching.stream import StreamAddress, stream

AGAIN = 1.0
"""Seconds between attempts to reach a bridge that does not answer."""
_ENDED = "The bridge ended the stream"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one CloudEvent per line")
    shown.add_argument(
        "--lines", action="store_true", help="print lines on a terminal too, not the live view"
    )
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
    live = sys.stdout.isatty() and not args.json and not args.lines
    return talk(args, partial(_live if live else _lines, args))


async def _lines(args: argparse.Namespace, ask: Ask) -> int:
    view = WatchView(Lines(as_json=args.json), own=args.own)
    place = StreamAddress(strays=args.strays)
    return await Watch(ask, view, follow=args.follow, place=place).run()


async def _live(args: argparse.Namespace, ask: Ask) -> int:
    """The live view waits for a bridge that restarts, even without --follow."""
    from bridge.cli.watching.live import LiveView  # noqa: PLC0415  a pipe does not need it

    if not args.follow:
        await ask("GET", "/livez")
    live = LiveView(ask, own=args.own)
    place = StreamAddress(strays=args.strays)
    reader = Watch(ask, WatchView(live, own=args.own, whole=True), follow=True, place=place)
    return await live.run(asyncio.create_task(reader.run()))


class Output(Protocol):
    """Where the CloudEvents go, and what there is to say about the stream."""

    def show(self, cloudevent: Mapping[str, Any], /) -> None: ...

    def away(self, why: str, /) -> None:
        """The bridge does not answer; the reader tries again."""

    def here(self) -> None:
        """The stream is open."""


@dataclass(frozen=True, slots=True)
class Lines:
    """One line for each CloudEvent, on stdout."""

    as_json: bool = False
    _color: bool = field(default_factory=sys.stdout.isatty)

    def show(self, cloudevent: Mapping[str, Any]) -> None:
        if self.as_json:
            text = json.dumps(cloudevent, separators=(",", ":")) + "\n"
        else:
            text = EventText(cloudevent).line(datetime.now(UTC), color=self._color)
        tell(text)
        sys.stdout.flush()

    def away(self, why: str) -> None:
        complain(f"{why}; waiting for it.")

    def here(self) -> None:
        """Say nothing: the next line shows it."""


@dataclass(slots=True)
class WatchView:
    """What to show: of what is pending the latest state, or with `whole` all of its history.

    A CloudEvent shown as pending is not shown twice.
    """

    out: Output = field(default_factory=Lines)
    own: bool = False
    whole: bool = False
    _shown: set[str] = field(default_factory=set)
    _followed: set[str] = field(default_factory=set)

    def pending(self, cloudevent: Mapping[str, Any]) -> None:
        self.show(cloudevent)
        self._shown.add(cloudevent["id"])

    def show(self, cloudevent: Mapping[str, Any]) -> None:
        if cloudevent["id"] not in self._shown and self._wanted(cloudevent):
            self.out.show(cloudevent)

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
                    self.view.out.here()
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
                self.view.out.away(why)
            away = True
            await asyncio.sleep(AGAIN)

    async def _read(self, news: AsyncIterator[dict[str, Any]]) -> None:
        if not self._begun:
            await self._pending()
        self._begun = True
        async for cloudevent in news:
            self.view.show(cloudevent)

    async def _pending(self) -> None:
        """The latest published state of every pending event, or its whole history."""
        found = await self.ask("GET", "/api/v1/events?pending=true")
        for event in found["events"]:
            history = (await self.ask("GET", event["href"]))["history"]
            told = [row["cloudevent"] for row in history]
            states = [one for one in told if "rank" in one["data"]]
            for one in told if self.view.whole else states[-1:]:
                self.view.pending(one)
