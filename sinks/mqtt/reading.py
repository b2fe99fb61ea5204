"""paho's reader of packets, made to pass on messages that it cannot read, or that are too large."""

import time
from typing import Any, Self

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.exception import MalformedPacket


class Beginning(bytearray):
    """As much of a packet as is worth keeping: MQTT lets 256 MB come, and 3.1.1 all of it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __iadd__(self, more: Any) -> Self:  # type: ignore[misc]
        self.extend(memoryview(more)[: self._most - len(self)])
        return self


class Reading(Client):
    """What paho cannot read would end the connection, and come again with the next, for ever.

    One that has U+FEFF in a property is such a message, and servers let it pass: it is legal.
    """

    largest = 65536
    """So many bytes of a packet are kept, and the rest is read past."""

    def overdue(self) -> float:
        """Seconds since the server should have answered; it may want another keep-alive than we."""
        return time.monotonic() - self._last_bytes_received - self.keepalive

    def _packet_read(self) -> MQTTErrorCode:
        if not self._in_packet["packet"]:
            self._in_packet["packet"] = Beginning(self.largest)
        return super()._packet_read()

    def _handle_publish(self) -> MQTTErrorCode:
        try:
            return super()._handle_publish()
        except MalformedPacket:
            packet = self._in_packet
            message = unreadable(packet["command"], bytes(packet["packet"]))
            if message is None:
                raise
            self._handle_on_message(message)
            return MQTTErrorCode.MQTT_ERR_SUCCESS


def unreadable(command: int, packet: bytes) -> MQTTMessage | None:
    """With its number, to acknowledge it by, and with all of its bytes for a payload, unread.

    None when not even that can be found.
    """
    qos = command >> 1 & 3
    end = 2 + int.from_bytes(packet[:2])
    number = packet[end : end + 2] if qos else b"\0\0"
    if qos > 1 or len(number) < 2:
        return None
    message = MQTTMessage(mid=int.from_bytes(number), topic=packet[2:end])
    message.qos, message.retain, message.payload = qos, bool(command & 1), packet
    return message
