"""Sends votes to the running bridge, and waits briefly for Azure's answer."""

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.shell import Ask
from bridge.cli.voting.ballot import Ballot
from bridge.cli.voting.result import VoteResult, answered, caught_up, explained, heard
from bridge.cli.voting.signer import Signer
from bridge.cli.watching.stream import StreamAddress, stream

PATH = "/api/v1/approvals"
WAIT = 10.0


@dataclass(frozen=True, slots=True)
class VoteMessage:
    """A ballot to send: its bytes, and the id that makes it safe to send again."""

    id: str
    body: bytes

    @classmethod
    def write(cls, ballot: Ballot) -> "VoteMessage":
        message_id = uuid.uuid4().hex
        return cls(message_id, json.dumps(ballot.body(message_id)).encode())


@dataclass(frozen=True, slots=True)
class Voting:
    """Votes at one bridge; *wait* is how many seconds Azure may take."""

    ask: Ask
    wait: float = WAIT
    signer: Signer | None = None

    async def cast(self, ballot: Ballot) -> list[VoteResult]:
        """Send the vote and follow it. Raises `Unreachable` and `RequestRefused`."""
        verdicts = await self._send(ballot)
        if any(one.waits for one in verdicts):
            verdicts = await self._follow(verdicts)
        return [await self._explain(one) for one in verdicts]

    async def _send(self, ballot: Ballot) -> list[VoteResult]:
        message = VoteMessage.write(ballot)
        headers = {"Content-Type": "application/json"}
        if self.signer is not None:
            headers |= self.signer.headers(message.id, time.time(), message.body)
        try:
            return answered(await self.ask("POST", PATH, message.body, headers), ballot)
        except RequestRefused as error:
            if "outcomes" not in error.problem:
                raise
            return answered(error.problem, ballot)

    async def _follow(self, verdicts: Sequence[VoteResult]) -> list[VoteResult]:
        """Open the stream first and read the state second, so that nothing in between is missed.

        A caller that may vote but not read, such as one with only a signature, gets the response.
        """
        known = {one.event_id: one for one in verdicts}
        with suppress(TimeoutError, StopAsyncIteration, RequestRefused, Unreachable):
            async with asyncio.timeout(self.wait), stream(self.ask, StreamAddress()) as news:
                for one in [one for one in verdicts if one.waits]:
                    event = await self.ask("GET", one.href)
                    known[one.event_id] = caught_up(one, event["history"])
                while any(one.waits for one in known.values()):
                    told = await anext(news)
                    known |= {key: heard(one, told) for key, one in known.items() if one.waits}
        return list(known.values())

    async def _explain(self, verdict: VoteResult) -> VoteResult:
        """What else a recorded vote needs, if we may read it."""
        if verdict.outcome == "recorded":
            with suppress(RequestRefused):
                return explained(verdict, await self.ask("GET", verdict.href))
        return verdict
