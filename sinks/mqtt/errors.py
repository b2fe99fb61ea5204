"""What MQTT servers answer and what sockets raise, in our two words and one sentence each.

The only place that knows reason codes; those of MQTT 3.1.1 come here as their MQTT 5 equals.
"""

import ssl
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from bridge.plugins import Rejected, Unavailable
from sinks import _network

FAILURE = 0x80
"""From here on a reason code says no. 0x10, nobody has subscribed, is a success."""
SLOW = 60.0
"""Seconds until another try at what somebody has to put right first."""
_LONGEST = 200
"""Characters of the server's own words."""
_HUNG_UP = (
    "it hung up, as a listener does that wants another tls (a client certificate, perhaps), "
    "transport or version"
)


class Lost(Unavailable):
    """The connection is no good: it must be made anew."""


class _Reason(NamedTuple):
    """What a code means, to follow "the server"."""

    says: str
    never: bool = False
    """Of one message: the same one would meet the same answer."""
    mend: bool = False
    """Of a connection: it stays so until somebody acts."""
    at_the_door: str | None = None
    """What it means, when that is more, for a client that wants in."""


_REASONS = {
    0x80: _Reason("fails and does not say why"),
    0x81: _Reason("could not read what we sent"),
    0x82: _Reason("finds that we break the protocol"),
    0x83: _Reason("does not take it, for reasons of its own"),
    0x84: _Reason("does not speak this version of MQTT; try another version", mend=True),
    0x85: _Reason("does not take this client id", mend=True),
    0x86: _Reason("refuses the username or password", mend=True),
    0x87: _Reason(
        "does not allow it",
        never=True,
        mend=True,
        at_the_door="lets no client in with this username, password, certificate, id or last will",
    ),
    0x88: _Reason("is not available"),
    0x89: _Reason("is busy"),
    0x8A: _Reason("has banned this client", mend=True),
    0x8B: _Reason("is shutting down"),
    0x8C: _Reason("wants to authenticate in another way", mend=True),
    0x8D: _Reason("heard nothing from us for too long"),
    0x8E: _Reason("let another connection take over", mend=True),
    0x8F: _Reason("does not take this topic to subscribe to", mend=True),
    0x90: _Reason("does not take this topic", never=True),
    0x91: _Reason("still waits for another message with this number"),
    0x93: _Reason("got more at once than it wanted"),
    0x94: _Reason("does not know the topic's alias"),
    0x95: _Reason("finds the packet too large", never=True),
    0x96: _Reason("gets messages too fast"),
    0x97: _Reason("has a quota, which is used up"),
    0x98: _Reason("was told to end the connection by its administrator", mend=True),
    0x99: _Reason("finds that the payload is not what its properties say", never=True),
    0x9A: _Reason("retains no messages; set birth_topic: null and retain_state: false", mend=True),
    0x9B: _Reason("does not take this QoS; set qos: 0", mend=True),
    0x9C: _Reason("wants us to use another server", mend=True),
    0x9D: _Reason("has moved", mend=True),
    0x9F: _Reason("gets connections too fast", mend=True),
    0xA0: _Reason("ends connections that last so long"),
    0xA2: _Reason("takes no wildcards; name the topic without + and #", mend=True),
}


def _reason(code: int) -> _Reason:
    return _REASONS.get(code, _Reason(f"answers with code {code:#04x}"))


def _sentence(says: str, said: str) -> str:
    return f"the server {says}" + (f": {said}" if said else "")


def message_refused(code: int, topic: str, said: str = "") -> Unavailable | Rejected:
    """What the answer to one message means for it; *said* are the server's own words."""
    reason = _reason(code)
    text = f"{_sentence(reason.says, said)} (topic {topic})"
    return Rejected(text) if reason.never else Unavailable(text)


def not_let_in(code: int, where: str, said: str = "") -> Unavailable:
    """What the answer to our greeting means."""
    reason = _reason(code)
    text = f"{where}: {_sentence(reason.at_the_door or reason.says, said)}"
    return Unavailable(text, retry_after=SLOW if reason.mend else None)


def subscription_refused(code: int, topic: str, said: str = "") -> Unavailable:
    reason = _reason(code)
    text = f"topic {topic}: {_sentence(reason.says, said)}"
    return Unavailable(text, retry_after=SLOW if reason.mend else None)


def connection_ended(code: int, client_id: str, said: str = "") -> Lost:
    """The server has said goodbye, and why; taken over means that the client id is used twice."""
    reason = _reason(code)
    text = f"{_sentence(reason.says, said)} (client id {client_id})"
    return Lost(text, retry_after=SLOW if reason.mend else None)


_CONNECTING: _network.Reasons = {
    ssl.SSLEOFError: _HUNG_UP,
    TimeoutError: "no answer in time",
    ConnectionError: lambda error: _websocket(error) or _HUNG_UP,
}


def _websocket(error: ConnectionError) -> str | None:
    """The error that paho has for it: no number, and words that begin like this."""
    if str(error).startswith("WebSocket"):
        return "it does not speak MQTT in WebSockets at this path"
    return None


def not_connected(error: BaseException | None, where: str) -> Unavailable:
    """Why there was no answer to our greeting; without *error* the far side just hung up."""
    why = _HUNG_UP if error is None else _network.why(error, _CONNECTING)
    return Unavailable(f"{where}: {why}")


@dataclass(frozen=True)
class Acknowledgement:
    """A reason code, of MQTT 5 whatever the version, and the server's own words if it has any."""

    code: int
    said: str = ""

    @property
    def ok(self) -> bool:
        return self.code < FAILURE

    @classmethod
    def read(cls, code: Any, properties: Any) -> Self:
        """From what paho gives to its callbacks."""
        said = str(getattr(properties, "ReasonString", ""))[:_LONGEST]
        return cls(int(code.value), " ".join(said.split()))


@dataclass(frozen=True)
class Greeting:
    """What the server said about itself when it let us in; MQTT 3.1.1 says little."""

    session_present: bool = False
    receive_maximum: int = 65535
    maximum_packet: int | None = None
    maximum_qos: int = 2
    retains: bool = True

    @classmethod
    def read(cls, flags: Any, properties: Any) -> Self:
        """From what paho gives to its callback."""
        return cls(
            session_present=flags.session_present,
            receive_maximum=getattr(properties, "ReceiveMaximum", 65535),
            maximum_packet=getattr(properties, "MaximumPacketSize", None),
            maximum_qos=getattr(properties, "MaximumQoS", 2),
            retains=bool(getattr(properties, "RetainAvailable", 1)),
        )
