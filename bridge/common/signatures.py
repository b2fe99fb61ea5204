"""Standard Webhooks: sign a message, and check whether one of our keys signed it.

Pure: callers read the keys, and decide whether a time is recent.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from bridge.common.errors import Misconfigured

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
HEADERS = (ID, TIMESTAMP, SIGNATURE)

MOST_SIGNATURES = 4
"""How many signatures of one message are checked; key rotation needs two."""
_LONGEST_HEADER = 4096
_ID = re.compile(r"[!-\-/-~]{1,256}")
_TIMESTAMP = re.compile(r"[0-9]{1,11}")
_HMAC_BYTES = range(24, 65)
_SEED = 32

Headers = Mapping[str, str] | Sequence[tuple[str, bytes]]


class Mismatch(ValueError):
    """None of our keys made this signature; the text says what is wrong."""


class Unsigned(Mismatch):
    """There is no signature at all."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What a signature proves: the message's id, and the time of signing in Unix seconds."""

    id: str
    timestamp: int


@dataclass(frozen=True, slots=True)
class Key:
    """A key of one kind. Its bytes are never shown."""

    version: Literal["v1", "v1a"]
    private: bool
    _material: Any = field(repr=False)

    def sign(self, content: bytes) -> bytes:
        if self.version == "v1":
            return hmac.digest(self._material, content, hashlib.sha256)
        if not self.private:
            raise Misconfigured("a public key (whpk_) cannot sign; give the private one (whsk_)")
        signature: bytes = self._material.sign(content)
        return signature

    def made(self, signature: bytes, content: bytes) -> bool:
        """Whether this key made *signature*."""
        if self.version == "v1":
            return hmac.compare_digest(self.sign(content), signature)
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  only with Ed25519

        public = self._material.public_key() if self.private else self._material
        try:
            public.verify(signature, content)
        except InvalidSignature:
            return False
        return True


@lru_cache(maxsize=1024)
def read_key(text: str) -> Key:
    """Read a key: `whsec_…`, `whsk_…` or `whpk_…`. Raises `Misconfigured`."""
    kind, _, encoded = text.partition("_")
    if kind not in {"whsec", "whsk", "whpk"}:
        raise Misconfigured("a key starts with whsec_ (HMAC), whsk_ or whpk_ (Ed25519)")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        raise Misconfigured(f"the text after {kind}_ in a key must be base64") from None
    if kind == "whsec":
        return _hmac(raw)
    return _private(raw) if kind == "whsk" else _public(raw)


def sign(keys: Sequence[Key], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers for a message, with a signature by each of *keys*."""
    if not _ID.fullmatch(message_id):
        raise ValueError("a webhook-id must be 1 to 256 visible ASCII characters, no full stop")
    content = _content(message_id, str(timestamp), body)
    made = [f"{key.version},{_encode(key.sign(content))}" for key in keys]
    return {ID: message_id, TIMESTAMP: str(timestamp), SIGNATURE: " ".join(made)}


def verify(keys: Iterable[Key], headers: Headers, body: bytes) -> Signed:
    """Return what the signature proves if one of *keys* made it. Raises only `Mismatch`.

    The first match ends the check, and only the first few signatures are checked: both limit what
    a message can cost.
    """
    message_id, timestamp, listed = _claim(headers)
    content = _content(message_id, timestamp, body)
    for key in keys:
        for version, signature in listed:
            if version == key.version and key.made(signature, content):
                return Signed(message_id, int(timestamp))
    raise Mismatch("none of the known keys made its signature")


def is_signed(headers: Headers) -> bool:
    """Whether a message claims to be signed."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return any(name.lower() == SIGNATURE for name, _ in pairs)


def _content(message_id: str, timestamp: str, body: bytes) -> bytes:
    return b"%b.%b.%b" % (message_id.encode(), timestamp.encode(), body)


def _claim(headers: Headers) -> tuple[str, str, list[tuple[str, bytes]]]:
    found = _texts(headers)
    if SIGNATURE not in found:
        raise Unsigned("it is not signed")
    message_id, timestamp = found.get(ID, ""), found.get(TIMESTAMP, "")
    if not _ID.fullmatch(message_id):
        raise Mismatch("its webhook-id must be 1 to 256 visible characters, and no full stop")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise Mismatch("its webhook-timestamp must be a whole number of seconds")
    parts = found[SIGNATURE].split(" ", MOST_SIGNATURES)[:MOST_SIGNATURES]
    return message_id, timestamp, [one for part in parts if (one := _signature(part))]


def _texts(headers: Headers) -> dict[str, str]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found: dict[str, str] = {}
    for spelled, value in pairs:
        name = spelled.lower()
        if name not in HEADERS:
            continue
        if name in found or len(value) > _LONGEST_HEADER:
            raise Mismatch(f"its header {name} occurs twice, or is too long")
        try:
            found[name] = value if isinstance(value, str) else value.decode("ascii")
        except UnicodeDecodeError:
            raise Mismatch(f"its header {name} is not ASCII") from None
    return found


def _signature(part: str) -> tuple[str, bytes] | None:
    """One signature of the list; None, which matches no key, when it cannot be read."""
    version, _, encoded = part.partition(",")
    try:
        return version, base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _hmac(raw: bytes) -> Key:
    if len(raw) not in _HMAC_BYTES:
        raise Misconfigured(f"a whsec_ key must have 24 to 64 bytes, not {len(raw)}")
    return Key("v1", private=True, _material=raw)


def _private(raw: bytes) -> Key:
    """A seed, or a seed and its public key, as libsodium stores them."""
    if len(raw) not in (_SEED, 2 * _SEED):
        raise Misconfigured(f"a whsk_ key must have 32 or 64 bytes, not {len(raw)}")
    material = _ed25519().Ed25519PrivateKey.from_private_bytes(raw[:_SEED])
    if raw[_SEED:] and material.public_key().public_bytes_raw() != raw[_SEED:]:
        raise Misconfigured("the two halves of the whsk_ key do not match")
    return Key("v1a", private=True, _material=material)


def _public(raw: bytes) -> Key:
    if len(raw) != _SEED:
        raise Misconfigured(f"a whpk_ key must have 32 bytes, not {len(raw)}")
    return Key("v1a", private=False, _material=_ed25519().Ed25519PublicKey.from_public_bytes(raw))


def _ed25519() -> Any:
    """Import the library only for such a key: HMAC does not need it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415  HMAC needs no library
    except ImportError:
        extra = "pip install 'scheduled-events-bridge[ed25519]'"
        raise Misconfigured(f"Ed25519 keys need a library; install it with: {extra}") from None
    return ed25519
