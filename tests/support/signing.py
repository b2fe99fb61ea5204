"""Signed messages, as a sender would make them; signed now by default."""

import base64
import json
import time
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bridge.common.signatures import read_key, sign
from bridge.plugins import Delivery


class Signer:
    """An approver with a key: `entry()` is its entry in allow, `delivery()` is what it sends."""

    def __init__(self, approver: str, *, seed: int = 1, ed25519: bool = True) -> None:
        self.approver = approver
        raw = bytes([seed]) * 32
        self.secret = _text("whsk" if ed25519 else "whsec", raw)
        self.key = read_key(self.secret)
        if ed25519:
            public = Ed25519PrivateKey.from_private_bytes(raw).public_key().public_bytes_raw()
            self._entry = {"ed25519": _text("whpk", public)}
        else:
            self._entry = {"hmac": self.secret}

    def entry(self, **limits: Any) -> dict[str, Any]:
        return {"approver": self.approver, "keys": [self._entry], **limits}

    def headers(self, body: bytes, name: str, age: float = 0.0) -> dict[str, str]:
        return sign([self.key], name, int(time.time() - age), body)

    def delivery(
        self, event_id: str, *, name: str = "w-1", age: float = 0.0, **said: Any
    ) -> Delivery:
        """Plain JSON; keys that begin with an underscore are the transport's."""
        transport = {key[1:]: said.pop(key) for key in list(said) if key.startswith("_")}
        body = json.dumps({"eventId": event_id, **said}).encode()
        found = self.headers(body, name, age).items()
        return Delivery(body, [(key, value.encode()) for key, value in found], **transport)


def wrapped(delivery: Delivery) -> Delivery:
    """The same message for a transport without headers."""
    headers = {name: value.decode() for name, value in delivery.headers}
    return Delivery(json.dumps({**headers, "payload": delivery.body.decode()}).encode())


def _text(prefix: str, raw: bytes) -> str:
    return f"{prefix}_{base64.b64encode(raw).decode()}"
