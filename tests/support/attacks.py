"""A table of attacks, for every channel that carries a body and a signature."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.signing import Signer

from bridge.common.signatures import ID, SIGNATURE, TIMESTAMP, sign
from bridge.policy.message import APPROVE, LARGEST

ORDERS = Signer("orders", seed=1)
BILLING = Signer("billing", seed=2, ed25519=False)
STRANGER = Signer("orders", seed=3)
NIGHT = Signer("night", seed=4)
FROST = Signer("frost", seed=5)
FAR = Signer("far", seed=6)
OPERATOR = Signer("operator", seed=7)

RULES: dict[str, Any] = {
    "require": {"approvers": ["orders", "billing"]},
    "allow": [
        ORDERS.entry(),
        BILLING.entry(),
        NIGHT.entry(decisions=["hold"]),
        FROST.entry(event_types=["Freeze"]),
        FAR.entry(resources=["db-*"]),
        OPERATOR.entry(via="control"),
    ],
}
"""Once billing has approved, one vote that passes for orders' is enough for a StartRequest."""

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Message:
    """A message to send; each channel carries the headers in its own way."""

    body: bytes
    headers: Headers

    def wrapped(self) -> bytes:
        """The message for a channel without headers; a repeated name stays repeated."""
        pairs = [*self.headers, ("payload", self.body.decode())]
        return f"{{{', '.join(f'{json.dumps(k)}: {json.dumps(v)}' for k, v in pairs)}}}".encode()


@dataclass(frozen=True)
class Attack:
    """An attack and its expected refusal: a reason on a bus, and a status over HTTP.

    A reason of None means that the message is not answered. *headers* says that the attack is in
    the headers, so it cannot be sent on a channel without them.
    """

    name: str
    make: Callable[[str], Message]
    reason: str | None
    says: str
    status: int
    headers: bool = False
    local_reason: str | None = None


def signed(who: Signer, event_id: str, name: str, age: float = 0.0, **said: Any) -> Message:
    """The name is the reason too: an unreadable message is known only by its bytes."""
    body = json.dumps({"eventId": event_id, "reason": name, **said}).encode()
    return Message(body, list(who.headers(body, name, age).items()))


def with_header(found: Message, name: str, value: str) -> Message:
    return Message(found.body, [(k, value if k == name else v) for k, v in found.headers])


def _forged(event: str) -> Message:
    return signed(STRANGER, event, "forged")


def _unsigned(event: str) -> Message:
    return Message(json.dumps({"eventId": event, "approver": "orders"}).encode(), [])


def _tampered(event: str) -> Message:
    found = signed(ORDERS, event, "tampered", decision="hold")
    return Message(found.body.replace(b'"hold"', b'"approve"'), found.headers)


def _renamed(event: str) -> Message:
    return with_header(signed(ORDERS, event, "renamed"), ID, "renamed-again")


def _redated(event: str) -> Message:
    return with_header(signed(ORDERS, event, "redated", 9000), TIMESTAMP, str(int(time.time())))


def _old(event: str) -> Message:
    return signed(ORDERS, event, "old", age=9000)


def _future(event: str) -> Message:
    return signed(ORDERS, event, "future", age=-900)


def _year_33658(event: str) -> Message:
    body = json.dumps({"eventId": event}).encode()
    return Message(body, list(sign([ORDERS.key], "far-off", 999_999_999_999, body).items()))


def _oversized(event: str) -> Message:
    return signed(ORDERS, event, "oversized", more="x" * LARGEST)


def _other_name(event: str) -> Message:
    return signed(ORDERS, event, "other-name", approver="billing")


def _other_vm(event: str) -> Message:
    return signed(ORDERS, event, "other-vm", resource="vm-9")


def _garbled(event: str) -> Message:
    return with_header(signed(ORDERS, event, "garbled"), SIGNATURE, "v1a,***")


def _too_many(event: str) -> Message:
    found = signed(ORDERS, event, "too-many")
    real = dict(found.headers)[SIGNATURE]
    return with_header(found, SIGNATURE, " ".join(["v1,eA=="] * 4 + [real]))


def _confused(event: str) -> Message:
    """An HMAC with the public key as its secret: it fools a verifier that trusts the stated kind."""
    found = signed(ORDERS, event, "confused")
    named = dict(found.headers)
    public = base64.b64decode(ORDERS.entry()["keys"][0]["ed25519"].removeprefix("whpk_"))
    content = b".".join((named[ID].encode(), named[TIMESTAMP].encode(), found.body))
    made = base64.b64encode(hmac.digest(public, content, hashlib.sha256)).decode()
    return with_header(found, SIGNATURE, f"v1,{made} v1a,{made}")


def _twice(header: str) -> Callable[[str], Message]:
    def make(event: str) -> Message:
        found = signed(ORDERS, event, f"twice-{header}")
        return Message(found.body, [*found.headers, (header, dict(found.headers)[header])])

    return make


def _dressed(event: str) -> Message:
    """A signed body under attributes that were not signed."""
    found = signed(ORDERS, event, "dressed")
    named = {"specversion": "1.0", "id": "dressed", "source": "/o", "type": APPROVE}
    return Message(found.body, [*found.headers, *((f"ce-{k}", v) for k, v in named.items())])


def _two_ids(event: str) -> Message:
    named = {"specversion": "1.0", "id": "one", "source": "/o", "type": APPROVE}
    body = json.dumps({**named, "data": {"eventId": event}}).encode()
    return Message(body, list(ORDERS.headers(body, "another").items()))


def _two_minds(event: str) -> Message:
    body = f'{{"eventId": "x", "eventId": "{event}"}}'.encode()
    return Message(body, list(ORDERS.headers(body, "two-minds").items()))


def _batch(event: str) -> Message:
    found = signed(ORDERS, event, "batch")
    kind = ("content-type", "application/cloudevents-batch+json")
    return Message(found.body, [*found.headers, kind])


def _by(who: Signer, name: str) -> Callable[[str], Message]:
    return lambda event: signed(who, event, name)


NO_KEY = "none of the known keys made its signature"
ATTACKS = (
    Attack("signed by a stranger's key", _forged, "unauthorized", NO_KEY, 401),
    Attack("not signed", _unsigned, "unauthorized", "it is not signed", 401),
    Attack("changed after it was signed", _tampered, "unauthorized", NO_KEY, 401),
    Attack("given another id", _renamed, "unauthorized", NO_KEY, 401),
    Attack("given another time", _redated, "unauthorized", NO_KEY, 401),
    Attack(
        "signed long ago", _old, "replayed", "signed before", 403, local_reason="unauthorized"
    ),
    Attack("signed in the future", _future, "unauthorized", "in the future", 403),
    Attack("signed in the year 33658", _year_33658, "unauthorized", "whole number of sec", 401),
    Attack("too large", _oversized, "malformed", "bytes; at most 65536 are read", 413),
    Attack("under another's name", _other_name, "unauthorized", "under another name", 403),
    Attack("for a VM not in it", _other_vm, "not-approvable", "does not name", 409),
    Attack("a decision not allowed", _by(NIGHT, "n"), "unauthorized", "may not vote approve", 403),
    Attack("an event type not allowed", _by(FROST, "f"), "unauthorized", "not vote on Reb", 403),
    Attack("a VM not allowed", _by(FAR, "a"), "unauthorized", "may not vote for every VM", 403),
    Attack("the wrong channel", _by(OPERATOR, "c"), "unauthorized", "may not vote via", 403),
    Attack("a garbled signature", _garbled, "unauthorized", NO_KEY, 401),
    Attack("a fifth signature", _too_many, "unauthorized", "none of the known keys", 401),
    Attack("a public key as secret", _confused, "unauthorized", NO_KEY, 401),
    Attack(
        "two signature headers", _twice(SIGNATURE), "unauthorized", "twice", 401, headers=True
    ),
    Attack("two id headers", _twice(ID), "malformed", "twice", 400, headers=True),
    Attack("attributes not signed", _dressed, "malformed", "does not cover", 400, headers=True),
    Attack("two ids", _two_ids, "malformed", "is not the CloudEvent's id", 400),
    Attack("one name twice in the JSON", _two_minds, "malformed", "not JSON", 400),
    Attack("a batch", _batch, "malformed", "must be JSON", 415, headers=True),
)  # fmt: skip
