"""Opens messages: what they say, and who sent them.

Signatures are verified with the keys in `approvals.allow`, which are read when needed.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from bridge.common.signatures import Headers, Key, Mismatch, Unsigned, is_signed, verify
from bridge.plugins import Delivery
from bridge.policy.allow import Allow
from bridge.policy.message import read, unwrap
from bridge.policy.votes import Approval, Refusal

log = logging.getLogger(__name__)

_LOG_AGAIN = 60.0


@dataclass(frozen=True, slots=True)
class Proof:
    """The verified sender of a message; empty if it is not signed."""

    identity: str | None = None
    signed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OpenedMessage:
    """The content of a message, and who sent it if that is verified; else perhaps a `refusal`."""

    said: Sequence[Approval]
    proof: Proof
    refusal: Refusal | None = None


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
        for rule in allow:
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


def place_in_log(delivery: Delivery) -> str | None:
    """What no other message without an id has: its log, and its position and time in it.

    A topic that is created again counts its offsets from 0 again.
    """
    if delivery.position is None or delivery.log is None:
        return delivery.position
    recorded = delivery.recorded.isoformat() if delivery.recorded else ""
    return f"{delivery.log}\x1f{delivery.position}\x1f{recorded}"
