"""How fast the MQTT sink publishes, beside paho's client alone doing the same.

Both publish the same bodies to the same Mosquitto with QoS 1 and wait for every acknowledgment,
with as many messages in flight. Without Mosquitto it says so and measures nothing.
"""

import argparse
import asyncio
import contextlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from bridge.plugins import CloudEvent, Place
from sinks.mqtt import MqttSettings, sink
from sinks.mqtt.binding import STRUCTURED
from sinks.mqtt.client import WINDOW

AIM = 2.0
BATCH = 500
BODY = '{"specversion":"1.0","id":"%d","partitionkey":"%d","data":{"description":"%s"}}'
CONFIG = "listener {port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages {window}\n"


@contextlib.contextmanager
def mosquitto() -> Iterator[int]:
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        print("Mosquitto is not installed, so there is nothing to measure")
        sys.exit(0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(CONFIG.format(port=port, window=WINDOW))
        quiet = subprocess.DEVNULL
        process = subprocess.Popen([program, "-c", str(config)], stdout=quiet, stderr=quiet)
        try:
            wait_for(port)
            yield port
        finally:
            process.kill()
            process.wait()


def wait_for(port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    sys.exit("Mosquitto did not start")


def cloudevents(count: int, size: int) -> list[CloudEvent]:
    def body(n: int) -> bytes:
        return (BODY % (n, n, "x" * size)).encode()

    return [
        CloudEvent(str(n), "azure.scheduledevents.scheduled.v1", str(n), body(n))
        for n in range(count)
    ]


def raw(port: int, batches: Sequence[Sequence[CloudEvent]]) -> float:
    """Seconds that paho alone takes."""
    client = Client(CallbackAPIVersion.VERSION2, "raw", protocol=MQTTProtocolVersion.MQTTv5)
    acknowledged = threading.Semaphore(0)
    connected = threading.Event()
    client.on_connect = lambda *_: connected.set()
    client.on_publish = lambda *_: acknowledged.release()
    client.connect("127.0.0.1", port)
    client.loop_start()
    connected.wait()
    properties = Properties(PacketTypes.PUBLISH)
    properties.ContentType, properties.PayloadFormatIndicator = STRUCTURED, 1
    began = time.perf_counter()
    for batch in batches:
        for each in batch:
            client.publish(f"raw/{each.key}", each.body, 1, properties=properties)
        for _ in batch:
            acknowledged.acquire()
    taken = time.perf_counter() - began
    client.disconnect()
    client.loop_stop()
    return taken


def ours(port: int, batches: Sequence[Sequence[CloudEvent]]) -> float:
    """Seconds that the sink takes."""

    async def publish() -> float:
        given = {"type": "mqtt", "host": "127.0.0.1", "port": port, "topic": "sink/{subject}"}
        settings = MqttSettings.model_validate(given | {"birth_topic": None})
        async with sink.open(settings, Place({"vm_id": "bench"})) as send:
            began = time.perf_counter()
            for batch in batches:
                if any(result is not None for result in await send(batch)):
                    sys.exit("the sink did not deliver")
            return time.perf_counter() - began

    return asyncio.run(publish())


def compare(runs: int, count: int, size: int) -> dict[str, list[float]]:
    """Alternate, so that what else the machine does burdens both; the first round is warm-up."""
    events = cloudevents(count, size)
    batches = [events[place : place + BATCH] for place in range(0, count, BATCH)]
    ways: dict[str, Callable[[int, Sequence[Sequence[CloudEvent]]], float]] = {
        "paho": raw,
        "sink": ours,
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    with mosquitto() as port:
        for round_ in range(runs + 1):
            for name, way in ways.items():
                seconds = way(port, batches)
                if round_:
                    taken[name].append(seconds)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each, alternating (5)")
    parser.add_argument("--count", type=int, default=2000, help="messages in a run (2000)")
    parser.add_argument("--size", type=int, default=1200, help="bytes of text in each (1200)")
    given = parser.parse_args()
    print(f"medians of {given.runs} runs, Python {sys.version.split()[0]}, {sys.platform}")
    taken = {
        name: statistics.median(each)
        for name, each in compare(given.runs, given.count, given.size).items()
    }
    rate = {name: f"{given.count / seconds:.0f}/s" for name, seconds in taken.items()}
    ratio = f"{taken['sink'] / taken['paho']:.2f}x"
    print(f"{'':18}{'paho':>12}{'sink':>12}{'ratio':>8}{'aim':>8}")
    print(f"{'acknowledged':18}{rate['paho']:>12}{rate['sink']:>12}{ratio:>8}{AIM:>7}x")


if __name__ == "__main__":
    main()
