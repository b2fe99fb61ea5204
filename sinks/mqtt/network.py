"""paho's client and its thread, made so that both can be stopped at any moment."""

import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.exception import MalformedPacket
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode

from sinks.mqtt.binding import MqttMessage
from sinks.mqtt.connection import Connector

Properties: Any = PahoProperties
"""Untyped: paho's class has no type hints for its properties."""
_AT_ONCE = struct.pack("HH" if os.name == "nt" else "ii", 1, 0)
"""SO_LINGER of zero: unsent bytes are dropped with the connection."""


class Beginning(bytearray):
    """The start of a packet. MQTT allows 256 MB, and a 3.1.1 client cannot set a limit."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __iadd__(self, more: Any) -> Self:  # type: ignore[misc]  # takes less than bytearray does
        self.extend(memoryview(more)[: self._most - len(self)])
        return self


class Reading(Client):
    """Survives messages that paho cannot parse: they would end every connection, forever.

    A property with U+FEFF makes such a message. It is legal, so servers pass it on.
    """

    largest = 65536
    """How many bytes of a packet are kept; the rest is skipped."""
    last_packet = 0.0
    """When the server sent its last packet, by the monotonic clock."""

    wrong = "a packet without a valid length"
    """What the server sent, if it is not MQTT."""

    def overdue(self) -> float:
        """Seconds since the server should have answered, by the keep-alive that it chose."""
        return time.monotonic() - self._last_bytes_received - self.keepalive

    def _packet_handle(self) -> MQTTErrorCode:
        self.last_packet = time.monotonic()
        try:
            answer = super()._packet_handle()
        except MalformedPacket as error:
            self.wrong = f"{_packet_name(self._in_packet['command'])}: {error}"
            raise
        if answer == MQTTErrorCode.MQTT_ERR_PROTOCOL:
            self.wrong = f"an unexpected packet ({_packet_name(self._in_packet['command'])})"
        return answer

    def _packet_read(self) -> MQTTErrorCode:
        if not self._in_packet["packet"]:
            self._in_packet["packet"] = Beginning(self.largest)
        return super()._packet_read()

    def _handle_pubackcomp(self, cmd: Any) -> MQTTErrorCode:
        """As paho does, but with reason codes that it does not know."""
        try:
            return super()._handle_pubackcomp(cmd)
        except MalformedPacket:
            packet = bytes(self._in_packet["packet"])
            if len(packet) < 3 or _is_known(packet[2]):
                raise
        number, code = int.from_bytes(packet[:2]), UnknownCode(packet[2])
        with self._out_message_mutex:
            if number in self._out_messages:
                self._do_on_publish(number, code, None)  # type: ignore[arg-type]  # only its value is read
        return MQTTErrorCode.MQTT_ERR_SUCCESS

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


class UnknownCode(NamedTuple):
    """A reason code of an acknowledgment that MQTT does not define; below 0x80 it is success."""

    value: int


def _is_known(code: int) -> bool:
    try:
        ReasonCode(PacketTypes.PUBACK, identifier=code)
    except (KeyError, ValueError):
        return False
    return True


def _packet_name(command: int) -> str:
    return PacketTypes.Names[command >> 4].upper()


def unreadable(command: int, packet: bytes) -> MQTTMessage | None:
    """The message with its number, to acknowledge it, and the whole packet as its payload.

    None when the packet does not even contain a number.
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
    """What a client requests when it connects."""

    clean: bool = True
    """Whether the server deletes the session of this client id first."""
    expiry: int = 0
    """How many seconds the server keeps the session; 3.1.1: forever unless `clean`."""
    receive_maximum: int = 20
    """How many messages the server may send before we acknowledge one."""
    largest: int = 65536
    """The largest packet that we accept, in bytes. 3.1.1 cannot say so; we drop the rest."""


class Network(Reading):
    """Connects once. The thread calls `ended` last, with what went wrong.

    paho's own reconnecting is off. It would send what is still queued, perhaps after the
    bridge has sent something newer, and it does not say why it cannot connect.
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
        self._connector, self._terms, self._ended = connector, terms, ended
        self._fresh: Any = None
        self._cut_off = False
        self.on_socket_open = self._opened
        self.max_inflight_messages = 0  # paho queues nothing: Client limits what is in flight
        self.connect_timeout = connector.patience
        self.largest = terms.largest
        self.username_pw_set(connector.login.username, connector.login.password)
        if connector.login.context is not None:
            self.tls_set_context(connector.login.context)
        if connector.path is not None:
            self.ws_set_options(connector.path, dict(connector.login.headers))

    def will(self, message: MqttMessage) -> None:
        """Let the server publish *message* if the connection breaks. Call it before `start`."""
        properties = self._properties(message, PacketTypes.WILLMESSAGE)
        self.will_set(message.topic, message.payload, message.qos, message.retain, properties)

    def start(self) -> threading.Thread | None:
        """Start to connect. Return the thread, or None when it has already ended."""
        connector, terms = self._connector, self._terms
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
        """What the thread runs."""
        del retry_first_connection
        try:
            self.reconnect()
            super().loop_forever(timeout)
        except Exception as error:  # noqa: BLE001  it would be lost with the thread
            self._ended(error)
        else:
            self._ended(None)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def send(self, message: MqttMessage) -> tuple[int, int]:
        """The return code of paho, and the number of the acknowledgment to expect."""
        properties = self._properties(message, PacketTypes.PUBLISH)
        info = self.publish(message.topic, message.payload, message.qos, message.retain, properties)
        return info.rc, info.mid

    def size(self, message: MqttMessage) -> int:
        """The size of its packet, in bytes."""
        properties = self._properties(message, PacketTypes.PUBLISH)
        extra = 0 if properties is None else len(properties.pack())
        number = 2 if message.qos else 0
        rest = 2 + len(message.topic.encode()) + number + extra + len(message.payload)
        return 1 + max(1, (rest.bit_length() + 6) // 7) + rest

    def cut(self) -> None:
        """Close immediately, even if the server neither reads nor answers."""
        self._cut_off = True
        _abort(self.socket() or self._fresh)

    def forget(self) -> None:
        """After the end of the thread: close what paho leaves to the garbage collector."""
        self._reset_sockets()

    def _opened(self, _client: Any, _userdata: Any, sock: Any) -> None:
        with suppress(OSError):
            _plain(sock).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._cut_off:  # it connected after it was given up
            _abort(sock)

    def _create_socket(self) -> Any:
        """As paho does, but close the socket when a handshake fails."""
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
        context: Any = self._connector.login.context
        wrapped: ssl.SSLSocket = context.wrap_socket(
            tcp_sock, server_hostname=self._connector.host, do_handshake_on_connect=False
        )
        self._fresh = wrapped
        wrapped.settimeout(self._connector.patience)
        wrapped.do_handshake()
        return wrapped

    def _properties(self, message: MqttMessage, kind: int) -> Any:
        if self._connector.version != "5":
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


def _abort(sock: Any) -> None:
    """Wake the thread that waits for the socket, and drop unsent bytes."""
    if sock is None:
        return
    with suppress(OSError, ssl.SSLError):
        _plain(sock).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        # Not SSLSocket's own, which removes the object that the thread is reading with.
        socket.socket.shutdown(_plain(sock), socket.SHUT_RDWR)
