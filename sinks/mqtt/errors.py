"""Turns what MQTT servers answer and sockets raise into `Unavailable` or `Rejected`.

Only this module knows reason codes; those of MQTT 3.1.1 arrive as their MQTT 5 equivalents.
"""

import ssl
import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from bridge.plugins import Rejected, Unavailable
from sinks import _network

FAILURE = 0x80
"""The first reason code that is a failure. 0x10, no subscribers, is a success."""
SLOW = 60.0
"""Seconds until the next try after an error that an operator has to fix."""
_LONGEST = 200
"""The most characters of the server's own text."""
_HUNG_UP = (
    "it closed the connection; perhaps it expects other tls (a client certificate?), "
    "transport or version"
)


_TAKEN_OVER = 0x8E
_NOT_MQTT = {0x81, 0x82}
"""The server says that our packets are wrong: it will say so again."""
_REMEMBERED = 3600.0
"""Seconds after which an end no longer counts."""
_LONGEST_WAIT = 300.0
_COUNTED = 16
"""How many ends are remembered: more would not make the wait longer."""
_LONGEST_GUESS = 60.0
"""The longest wait if the server did not say that it was a takeover."""


class Lost(Unavailable):
    """The connection is unusable: the bridge must connect again."""


class _Reason(NamedTuple):
    """What a code means, as the rest of "the server …"."""

    says: str
    never: bool = False
    """For a message: sending it again would get the same answer."""
    lasting: bool = False
    """For a connection: it stays so until an operator acts."""
    connecting: str | None = None
    """What it means while connecting, if that is more specific."""


_REASONS = {
    0x80: _Reason("failed without a reason"),
    0x81: _Reason("could not parse our packet"),
    0x82: _Reason("says that we violate the protocol"),
    0x83: _Reason("does not accept it, for reasons of its own"),
    0x84: _Reason("does not support this version of MQTT; try another version", lasting=True),
    0x85: _Reason("does not accept this client id", lasting=True),
    0x86: _Reason("refuses the username or password", lasting=True),
    0x87: _Reason(
        "does not allow it",
        never=True,
        lasting=True,
        connecting="does not accept this username, password, certificate, client id or last will",
    ),
    0x88: _Reason("is not available"),
    0x89: _Reason("is busy"),
    0x8A: _Reason("has banned this client", lasting=True),
    0x8B: _Reason("is shutting down"),
    0x8C: _Reason("requires another authentication method", lasting=True),
    0x8D: _Reason("got nothing from us for too long"),
    _TAKEN_OVER: _Reason("let another connection take over"),
    0x8F: _Reason("does not accept this topic filter", lasting=True),
    0x90: _Reason("does not accept this topic", never=True),
    0x91: _Reason("still waits for another message with this number"),
    0x93: _Reason("got more messages at a time than it allows"),
    0x94: _Reason("does not know the topic alias"),
    0x95: _Reason("says that the packet is too large", never=True),
    0x96: _Reason("gets messages too fast"),
    0x97: _Reason("has a quota, and it is used up"),
    0x98: _Reason("was told to end the connection by its administrator", lasting=True),
    0x99: _Reason("says that the payload does not match its format", never=True),
    0x9A: _Reason(
        "retains no messages; set birth_topic: null and retain_state: false", lasting=True
    ),
    0x9B: _Reason("does not support this QoS; set qos: 0", lasting=True),
    0x9C: _Reason("wants us to use another server", lasting=True),
    0x9D: _Reason("has moved", lasting=True),
    0x9F: _Reason("gets connections too fast", lasting=True),
    0xA0: _Reason("limits how long a connection may last"),
    0xA2: _Reason("does not support wildcards; write the topic without + and #", lasting=True),
}


def _reason(code: int) -> _Reason:
    return _REASONS.get(code, _Reason(f"answered with code {code:#04x}"))


def _sentence(says: str, said: str) -> str:
    return f"the server {says}" + (f": {said}" if said else "")


def message_refused(code: int, topic: str, said: str = "") -> Unavailable | Rejected:
    """What the answer to a message means; *said* is the server's own text."""
    reason = _reason(code)
    text = f"{_sentence(reason.says, said)} (topic {topic})"
    return Rejected(text) if reason.never else Unavailable(text)


def not_let_in(code: int, where: str, said: str = "") -> Unavailable:
    """What a refused connection means."""
    reason = _reason(code)
    text = f"{where}: {_sentence(reason.connecting or reason.says, said)}"
    return Unavailable(text, retry_after=SLOW if reason.lasting else None)


def subscription_refused(code: int, topic: str, said: str = "") -> Unavailable:
    reason = _reason(code)
    text = f"topic {topic}: {_sentence(reason.says, said)}"
    return Unavailable(text, retry_after=SLOW if reason.lasting else None)


def connection_ended(code: int, where: str, client_id: str, said: str = "") -> Lost:
    """Why the server ended the connection."""
    if code == _TAKEN_OVER:
        return taken_over(where, client_id, time.monotonic(), said)
    reason = _reason(code)
    text = f"{_sentence(reason.says, said)} (client id {client_id})"
    if code in _NOT_MQTT:
        return Lost(text, retry_after=_longer_wait(where, client_id, time.monotonic()))
    return Lost(text, retry_after=SLOW if reason.lasting else None)


def protocol_error(where: str, client_id: str, now: float, what: str) -> Lost:
    """The server sent something that is not MQTT, and will probably do so again."""
    text = f"the server violates the protocol: {what}"
    return Lost(text, retry_after=_longer_wait(where, client_id, now))


# What ends connections outlives them: two clients with one id would end each other's forever.
_ends: dict[tuple[str, str], list[float]] = {}


def taken_over(where: str, client_id: str, now: float, said: str = "") -> Lost:
    """Another client connected with our id. The first time we are back in a second."""
    text = _sentence(_reason(_TAKEN_OVER).says, said)
    wait = _longer_wait(where, client_id, now)
    return Lost(f"{text} (client id {client_id})", retry_after=wait)


def hung_up(where: str, client_id: str, now: float) -> Lost:
    """The server ended a new connection without a word; some do so when another takes over."""
    text = (
        f"the connection broke soon after it began; does another client use client id {client_id}?"
    )
    return Lost(text, retry_after=_longer_wait(where, client_id, now, _LONGEST_GUESS))


def _longer_wait(where: str, client_id: str, now: float, most: float = _LONGEST_WAIT) -> float:
    """A second, and twice as long with each such end of the last hour."""
    recent = [then for then in _ends.get((where, client_id), ()) if now - then < _REMEMBERED]
    _ends[where, client_id] = [*recent[-_COUNTED:], now]
    return min(most, 2.0 ** len(recent))


_CONNECTING: _network.Reasons = {
    ssl.SSLEOFError: _HUNG_UP,
    TimeoutError: "no answer in time",
    ConnectionError: lambda error: _websocket(error) or _HUNG_UP,
}


def _websocket(error: ConnectionError) -> str | None:
    """The error of paho for it has no number; its text begins like this."""
    if str(error).startswith("WebSocket"):
        return "it does not offer MQTT over WebSockets at this path"
    return None


def not_connected(error: BaseException | None, where: str) -> Unavailable:
    """Why connecting failed; without *error* the server just closed the connection."""
    why = _HUNG_UP if error is None else _network.why(error, _CONNECTING)
    return Unavailable(f"{where}: {why}")


@dataclass(frozen=True)
class Acknowledgment:
    """A reason code of MQTT 5, whatever the version, and the server's own text, if any."""

    code: int
    said: str = ""

    @property
    def ok(self) -> bool:
        return self.code < FAILURE

    @classmethod
    def read(cls, code: Any, properties: Any) -> Self:
        """Made from what paho passes to its callbacks."""
        said = str(getattr(properties, "ReasonString", ""))[:_LONGEST]
        return cls(int(code.value), " ".join(said.split()))


@dataclass(frozen=True)
class Greeting:
    """What the server said about itself in its CONNACK; MQTT 3.1.1 says little."""

    session_present: bool = False
    receive_maximum: int = 65535
    maximum_packet: int | None = None
    maximum_qos: int = 2
    retains: bool = True

    @classmethod
    def read(cls, flags: Any, properties: Any) -> Self:
        """Made from what paho passes to its callback."""
        return cls(
            session_present=flags.session_present,
            receive_maximum=getattr(properties, "ReceiveMaximum", 65535),
            maximum_packet=getattr(properties, "MaximumPacketSize", None),
            maximum_qos=getattr(properties, "MaximumQoS", 2),
            retains=bool(getattr(properties, "RetainAvailable", 1)),
        )
