"""paho's client and its thread, made so that both can be left at any moment."""

import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.exception import MalformedPacket
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from sinks.mqtt.binding import MqttMessage
from sinks.mqtt.connection import Connector

Properties: Any = PahoProperties
"""Without the hints that paho has not given it."""
_AT_ONCE = struct.pack("HH" if os.name == "nt" else "ii", 1, 0)
"""To linger for no time: what is not sent yet is dropped with the connection."""


class Beginning(bytearray):
    """As much of a packet as is worth keeping: MQTT lets 256 MB come, and 3.1.1 all of it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __iadd__(self, more: Any) -> Self:  # type: ignore[misc]  # takes less than bytearray does
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


@dataclass(frozen=True)
class Terms:
    """What a client asks of the server when it connects."""

    clean: bool = True
    """Whether what the server remembers of this client id is forgotten first."""
    expiry: int = 0
    """How many seconds the server remembers us afterwards; 3.1.1: for ever unless `clean`."""
    receive_maximum: int = 20
    """How many messages the server may send before we acknowledge one."""
    largest: int = 65536
    """The largest packet that we take, in bytes; 3.1.1 cannot say so, and we drop the rest."""


class Network(Reading):
    """Connects once. `ended` is called in the thread, last of all, with what went wrong there.

    paho's own reconnecting is off. It would send what is still queued when it is back, after the
    bridge may have sent something newer, and it keeps to itself why it cannot connect.
    """

    def __init__(
        self, connector: Connector, terms: Terms, ended: Callable[[Exception | None], None]
    ) -> None:
        five = connector.version == "5"
        super().__init__(
            CallbackAPIVersion.VERSION2,
            connector.client_id,
            clean_session=None if five else terms.clean,
            protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
            transport="tcp" if connector.path is None else "websockets",
            reconnect_on_failure=False,
            manual_ack=True,
        )
        self._door, self._terms, self._ended = connector, terms, ended
        self._fresh: Any = None
        self._cut_off = False
        self.on_socket_open = self._opened
        self.max_inflight_messages = 0  # nothing waits in paho: the window is ours
        self.connect_timeout = connector.patience
        self.largest = terms.largest
        self.username_pw_set(connector.login.username, connector.login.password)
        if connector.login.context is not None:
            self.tls_set_context(connector.login.context)
        if connector.path is not None:
            self.ws_set_options(connector.path, dict(connector.login.headers))

    def will(self, message: MqttMessage) -> None:
        """Let the server publish *message* if we go without a word. Before `start`."""
        properties = self._properties(message, PacketTypes.WILLMESSAGE)
        self.will_set(message.topic, message.payload, message.qos, message.retain, properties)

    def start(self) -> threading.Thread | None:
        """Begin to connect; the thread, or None when it is over already."""
        connector, terms = self._door, self._terms
        five = connector.version == "5"
        self.connect_async(
            connector.host,
            connector.port,
            connector.keep_alive,
            clean_start=terms.clean,
            properties=_asking(terms) if five else None,
        )
        self.loop_start()
        return self._thread

    def loop_forever(self, timeout: float = 1.0, retry_first_connection: bool = False) -> Any:  # noqa: FBT001, FBT002  as paho has it
        """The whole life of the thread."""
        del retry_first_connection
        try:
            self.reconnect()
            super().loop_forever(timeout)
        except Exception as error:  # noqa: BLE001  else it would die with the thread
            self._ended(error)
        else:
            self._ended(None)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def send(self, message: MqttMessage) -> tuple[int, int]:
        """The return code of paho, and the number under which the acknowledgement comes."""
        properties = self._properties(message, PacketTypes.PUBLISH)
        info = self.publish(message.topic, message.payload, message.qos, message.retain, properties)
        return info.rc, info.mid

    def size(self, message: MqttMessage) -> int:
        """Bytes of the packet that carries it."""
        properties = self._properties(message, PacketTypes.PUBLISH)
        extra = 0 if properties is None else len(properties.pack())
        number = 2 if message.qos else 0
        rest = 2 + len(message.topic.encode()) + number + extra + len(message.payload)
        return 1 + max(1, (rest.bit_length() + 6) // 7) + rest

    def cut(self) -> None:
        """Hang up at once, also on a far side that neither reads nor answers."""
        self._cut_off = True
        _hang_up(self.socket() or self._fresh)

    def forget(self) -> None:
        """When the thread is over: close what paho leaves to the garbage collector."""
        self._reset_sockets()

    def _opened(self, _client: Any, _userdata: Any, sock: Any) -> None:
        with suppress(OSError):
            _plain(sock).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._cut_off:  # it connected after nobody wanted it any more
            _hang_up(sock)

    def _create_socket(self) -> Any:
        """As paho does, but a socket that does not come through its handshakes is closed."""
        try:
            return super()._create_socket()
        except BaseException:
            if self._fresh is not None:
                self._fresh.close()
            raise

    def _create_socket_connection(self) -> Any:
        self._fresh = super()._create_socket_connection()
        return self._fresh

    def _ssl_wrap_socket(self, tcp_sock: socket.socket) -> ssl.SSLSocket:
        context: Any = self._door.login.context
        wrapped: ssl.SSLSocket = context.wrap_socket(
            tcp_sock, server_hostname=self._door.host, do_handshake_on_connect=False
        )
        self._fresh = wrapped
        wrapped.settimeout(self._door.patience)
        wrapped.do_handshake()
        return wrapped

    def _properties(self, message: MqttMessage, kind: int) -> Any:
        if self._door.version != "5":
            return None
        properties = Properties(kind)
        for name, value in message.properties.items():
            setattr(properties, name, value)
        return properties


def _asking(terms: Terms) -> Any:
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = terms.expiry
    properties.ReceiveMaximum = terms.receive_maximum
    properties.MaximumPacketSize = terms.largest
    return properties


def _plain(sock: Any) -> socket.socket:
    """The socket within paho's WebSocket, if it is one."""
    plain: socket.socket = getattr(sock, "_socket", sock)
    return plain


def _hang_up(sock: Any) -> None:
    """Wake whoever waits for it, and let what is not sent yet never arrive."""
    if sock is None:
        return
    with suppress(OSError, ssl.SSLError):
        _plain(sock).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        # Not SSLSocket's own, which takes away what the thread is reading with.
        socket.socket.shutdown(_plain(sock), socket.SHUT_RDWR)
