"""Raw clients: each connects, then sends and waits for acknowledgments."""

import asyncio
import fcntl
import os
import socket
import sys
import termios
import time
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

Send = Callable[[Sequence[bytes]], Awaitable[None]]
"""Returns when all bodies are acknowledged."""
_IN_FLIGHT = 20
"""As many MQTT messages as paho, like most servers, has in flight."""
_REQUESTS = 8
"""As many requests at the same time as the sink webhook."""
_KEY = b"602D9444-D2CD-49C7-8624-000000000000"
_LOOK = 0.0005
_ENVELOPES = 500
"""As many events in one request to Splunk as the sink sends."""
_TYPE = "application/cloudevents+json; charset=utf-8"


async def kafka(sink: dict[str, Any]) -> Send:
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415  only who needs it pays for it

    producer = AIOKafkaProducer(
        bootstrap_servers=sink["bootstrap_servers"],
        acks="all",
        max_batch_size=256 * 1024,
        enable_idempotence=False,
    )
    await producer.start()
    await producer.partitions_for(sink["topic"])
    headers = [("content-type", _TYPE.encode())]

    async def send(bodies: Sequence[bytes]) -> None:
        topic = sink["topic"]
        sent = [await producer.send(topic, body, key=_KEY, headers=headers) for body in bodies]
        await asyncio.gather(*sent)

    return send


async def mqtt(sink: dict[str, Any]) -> Send:
    from paho.mqtt.client import Client  # noqa: PLC0415  only who needs it pays for it
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion  # noqa: PLC0415
    from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415
    from paho.mqtt.properties import Properties  # noqa: PLC0415

    loop, done = asyncio.get_running_loop(), asyncio.Event()
    left = [0]
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.max_inflight_messages_set(_IN_FLIGHT)
    client.max_queued_messages_set(0)

    def acknowledged(*_: object) -> None:
        left[0] -= 1
        if not left[0]:
            loop.call_soon_threadsafe(done.set)

    client.on_publish = acknowledged
    client.on_connect = lambda *_: loop.call_soon_threadsafe(done.set)
    client.connect(sink["host"], sink["port"])
    client.loop_start()
    await done.wait()
    topic = sink["topic"].replace("{subject}", _KEY.decode())
    properties = Properties(PacketTypes.PUBLISH)
    properties.ContentType = _TYPE

    async def send(bodies: Sequence[bytes]) -> None:
        done.clear()
        left[0] = len(bodies)
        for body in bodies:
            client.publish(topic, body, qos=1, properties=properties)
        await done.wait()

    return send


async def webhook(sink: dict[str, Any]) -> Send:
    import aiohttp  # noqa: PLC0415  as above

    http = aiohttp.ClientSession(headers={"Content-Type": _TYPE})

    async def work(waiting: Iterator[bytes]) -> None:
        for body in waiting:
            async with http.post(sink["url"], data=body) as answer:
                answer.raise_for_status()

    async def send(bodies: Sequence[bytes]) -> None:
        waiting = iter(bodies)
        await asyncio.gather(*(work(waiting) for _ in range(min(_REQUESTS, len(bodies)))))

    return send


async def syslog(sink: dict[str, Any]) -> Send:
    host, _, port = sink["address"].removeprefix("tcp://").rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(framed: bytes) -> None:
        """Syslog has no acknowledgments: wait until TCP has confirmed all bytes."""
        connection.sendall(framed)
        while int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
            time.sleep(_LOOK)

    async def send(bodies: Sequence[bytes]) -> None:
        framed = b"".join(b"%d %s" % (len(body), body) for body in bodies)
        await asyncio.to_thread(write, framed)

    return send


async def file(sink: dict[str, Any]) -> Send:
    opened = os.open(sink["path"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)

    def write(lines: bytes) -> None:
        os.write(opened, lines)
        os.fsync(opened)

    async def send(bodies: Sequence[bytes]) -> None:
        await asyncio.to_thread(write, b"".join(body + b"\n" for body in bodies))

    return send


async def splunk(sink: dict[str, Any]) -> Send:
    import aiohttp  # noqa: PLC0415  as above

    http = aiohttp.ClientSession(headers={"Authorization": f"Splunk {sink['token']}"})
    url = f"{sink['url']}/services/collector/event"

    async def send(bodies: Sequence[bytes]) -> None:
        for place in range(0, len(bodies), _ENVELOPES):
            data = b"".join(bodies[place : place + _ENVELOPES])
            async with http.post(url, data=data) as answer:
                answer.raise_for_status()

    return send


async def stdout(_: dict[str, Any]) -> Send:
    async def send(bodies: Sequence[bytes]) -> None:
        sys.stdout.buffer.write(b"".join(body + b"\n" for body in bodies))
        sys.stdout.buffer.flush()

    return send


async def command(sink: dict[str, Any]) -> Send:
    async def send(bodies: Sequence[bytes]) -> None:
        for body in bodies:
            started = await asyncio.create_subprocess_exec(*sink["argv"], stdin=PIPE)
            await started.communicate(body + b"\n")
            if started.returncode:
                raise OSError(f"the command ended with {started.returncode}")

    return send


SENDERS = {
    "kafka": kafka,
    "mqtt": mqtt,
    "webhook": webhook,
    "syslog": syslog,
    "splunk": splunk,
    "file": file,
    "stdout": stdout,
    "command": command,
}
