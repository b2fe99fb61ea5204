"""Opens messages: what they say, and who sent them.

Signatures are verified with the keys in `approvals.allow`, which are read when needed.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from bridge.common.signatures import Headers, Key, Mismatch, Unsigned, is_signed, verify
from bridge.common.strictjson import read_object
from bridge.plugins import Delivery
from bridge.policy.allow import Allow
from bridge.policy.message import read, unwrap
from bridge.policy.votes import Approval, Given, Refusal

log = logging.getLogger(__name__)

_LOG_AGAIN = 60.0


@dataclass(frozen=True, slots=True)
class Proof:
    """The verified sender of a message; empty if it is not signed."""

    identity: str | None = None
    signed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """How and when a message arrived; record times after `latest` prove nothing."""

    via: str
    at: datetime
    latest: datetime
    local: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class OpenedMessage:
    """The content of a message, and who sent it if that is verified; else perhaps a `refusal`."""

    said: Sequence[Approval]
    proof: Proof
    refusal: Refusal | None = None

    def given(self, approval: Approval, delivery: Delivery, arrival: Arrival) -> Given:
        """One of its approvals, as it arrived."""
        return Given(
            approval,
            arrival.via,
            arrival.at,
            self.proof.identity,
            delivery.position,
            self.proof.signed_at,
            arrival.local,
            delivery.log,
            _past(delivery.recorded, arrival.latest),
            arrival.dry_run,
        )


@dataclass(slots=True)
class Verifier:
    """Tries the keys of one approver after another, until one matches."""

    _logged: float | None = None

    def open(self, allow: Sequence[Allow], delivery: Delivery, *, must_sign: bool) -> OpenedMessage:
        """Verify the sender before the content; neither is trusted without the other."""
        body, headers = unwrap(delivery.body, delivery.headers)
        reading = partial(read, body, headers, delivery.position, place=place_in_log(delivery))
        proof = self.prove(allow, headers, body, must_sign=must_sign)
        if isinstance(proof, Refusal):
            return OpenedMessage(reading(), Proof(), proof)
        signed = proof.identity is not None
        said = reading(signed=signed)
        return OpenedMessage(said, proof if signed else Proof(delivery.identity))

    def prove(
        self, allow: Sequence[Allow], headers: Headers, body: bytes, *, must_sign: bool
    ) -> Proof | Refusal:
        """What the signature proves. An optional signature is ignored if no keys are configured."""
        if not must_sign and (not is_signed(headers) or not any(rule.keys for rule in allow)):
            return Proof()
        why = "it is not signed"
        for rule in _likely_first(allow, body):
            try:
                signed = verify(self._keys(rule), headers, body)
            except Unsigned:
                break
            except Mismatch as error:
                why = str(error)
                continue
            return Proof(rule.approver, datetime.fromtimestamp(signed.timestamp, UTC))
        return Refusal("unauthorized", why)

    def _keys(self, rule: Allow) -> list[Key]:
        keys = []
        for key in rule.keys:
            try:
                keys.append(key.read())
            except (OSError, ValueError) as error:
                self._complain(rule.approver, str(error))
        return keys

    def _complain(self, approver: str, why: str) -> None:
        if self._logged is None or time.monotonic() - self._logged > _LOG_AGAIN:
            self._logged = time.monotonic()
            log.error("approvals.key_unreadable", extra={"approver": approver, "error": why})


def _likely_first(allow: Sequence[Allow], body: bytes) -> Iterator[Allow]:
    """All entries, beginning with those of the name that the message claims.

    It only saves work: whichever key fits is the proof.
    """
    content = read_object(body)
    data = content.get("data")
    name = (data if isinstance(data, dict) else content).get("approver")
    yield from (rule for rule in allow if rule.approver == name)
    yield from (rule for rule in allow if rule.approver != name)


def place_in_log(delivery: Delivery) -> str | None:
    """What no other message without an id has: its log, and its position and time in it.

    A topic that is created again counts its offsets from 0 again.
    """
    if delivery.position is None or delivery.log is None:
        return delivery.position
    recorded = delivery.recorded.isoformat() if delivery.recorded else ""
    return f"{delivery.log}\x1f{delivery.position}\x1f{recorded}"


def _past(recorded: datetime | None, latest: datetime) -> datetime | None:
    """A record time, unless it is later than the arrival: then it proves nothing.

    On some brokers the producer sets it, and may set it wrong.
    """
    return recorded if recorded is not None and recorded <= latest else None
