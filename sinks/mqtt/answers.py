"""What an MQTT server answers, as values: to our greeting, and to each message."""

from dataclasses import dataclass
from typing import Any, Self

from sinks.mqtt.errors import FAILURE

_LONGEST = 200


@dataclass(frozen=True)
class Answer:
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
