"""Asks y/N on a terminal for each scheduled event that can be approved."""

import argparse
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from bridge.cli.shell import FAILED, Ask, talk, tell
from bridge.cli.text import clock, names, printable
from bridge.cli.voting.ballot import Choice, PendingEvent, ballots, find, open_here, spoken_for
from bridge.cli.voting.cast import Voting
from bridge.cli.voting.result import lines

_CHOICE = Choice()
_MATTERS = ("eventType", "resources", "notBefore")


def is_interactive() -> bool:
    """Whether a person is there to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@dataclass(slots=True)
class Asking:
    """Asks and approves one by one: there may not be time to ask about all of them first."""

    args: argparse.Namespace
    _todo: deque[PendingEvent] = field(default_factory=deque)
    _vm: str | None = None

    def each(self, shown: Iterable[PendingEvent]) -> int:
        """Return 1 if something could not be approved. End of input means no to the rest."""
        self._todo.extend(open_here(shown))
        if self._todo and (code := talk(self.args, self._learn)):
            return code
        code = 0
        while self._todo:
            event = self._todo.popleft()
            try:
                yes = input(self._question(event)).strip().casefold() in {"y", "yes"}
            except (EOFError, KeyboardInterrupt) as no:
                tell("\n")
                if isinstance(no, KeyboardInterrupt):
                    raise
                break
            if yes:
                code = max(code, talk(self.args, partial(self._approve, event)))
        return code

    async def _learn(self, ask: Ask) -> int:
        self._vm = (await ask("GET", "/api/v1"))["vm"]
        return 0

    def _question(self, event: PendingEvent) -> str:
        when = clock(event["notBefore"], datetime.now(UTC))
        kind = f"{event['eventType']}{' (drill)' if event['drill'] else ''}"
        about = f"{kind} of {names(event['resources'])}, not before {when}"
        vm = spoken_for(event, _CHOICE, self._vm)
        spoken = f" for {vm}" if vm else ""
        return printable(f"{event['eventId']}: {about}. Approve{spoken}? y/N ")

    async def _approve(self, shown: PendingEvent, ask: Ask) -> int:
        """A yes is valid for what was shown: if the event has changed, ask again."""
        events = (await ask("GET", "/api/v1/events"))["events"]
        [event] = find([shown["eventId"]], events)[0] or [shown]
        if open_here([event]) and any(event[name] != shown[name] for name in _MATTERS):
            tell("The event has changed in the meantime.\n")
            self._todo.appendleft(event)
            return 0
        [ballot] = ballots([shown], _CHOICE, self._vm)
        verdicts = await Voting(ask).cast(ballot)
        tell(lines(verdicts, datetime.now(UTC)))
        return FAILED if any(one.bad for one in verdicts) else 0
