"""Every listener, sink and approval source over the IPv6 loopback address."""

import asyncio
import fcntl
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.bridge_process import announce, stage
from support.debian import tool
from support.foreign_events import approved, vote
from support.kafka_admin import KafkaAdmin
from support.kafka_broker import kafka_files
from support.kafka_config import NodeConfig
from support.kafka_node import Node
from support.kafka_reader import read_topic
from support.lacking import lacking
from support.lifeline import held
from support.ports import free_ports
from support.scripts import Unobtainable
from support.until import until

pytestmark = pytest.mark.timeout(180)
HOST = "::1"
TOKEN = "the-token"


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, heard: list[bytes]) -> None:
        self.heard = heard

    def datagram_received(self, data: bytes, addr: Any) -> None:
        del addr
        self.heard.append(data)


@asynccontextmanager
async def receivers(heard: dict[str, list[bytes]]) -> AsyncIterator[dict[str, int]]:
    """What listens for webhooks, Splunk's and syslog's messages; the port of each."""

    async def take(request: web.Request) -> web.Response:
        name = "splunk" if "collector" in request.path else "webhook"
        heard[name].append(await request.read())
        return web.json_response({"text": "Success", "code": 0})

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                heard["tcp"].append(data)
        writer.close()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    tcp = await asyncio.start_server(stream, HOST, 0)
    loop = asyncio.get_running_loop()
    udp, _ = await loop.create_datagram_endpoint(
        lambda: Datagrams(heard["udp"]), local_addr=(HOST, 0)
    )
    assert site._server is not None
    ports = {
        "http": site._server.sockets[0].getsockname()[1],  # type: ignore[attr-defined]  # a plain server
        "tcp": tcp.sockets[0].getsockname()[1],
        "udp": udp.get_extra_info("sockname")[1],
    }
    try:
        yield ports
    finally:
        udp.close()
        tcp.close()
        await runner.cleanup()


@asynccontextmanager
async def mosquitto(folder: Path) -> AsyncIterator[int]:
    port = free_ports(1)[0]
    (folder / "mosquitto.conf").write_text(
        f"listener {port} {HOST}\nallow_anonymous true\nuser root\n"
    )
    command = [str(tool("mosquitto")), "-c", str(folder / "mosquitto.conf")]
    with (folder / "mosquitto.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        await until(lambda: _listens(port), "mosquitto", (folder / "mosquitto.log").read_text)
        yield port
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        return probe.connect_ex((HOST, port)) == 0


@asynccontextmanager
async def kafka(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Its address, and a topic."""
    try:
        files = await asyncio.to_thread(kafka_files)
    except Unobtainable as error:
        lacking(f"Apache Kafka is not to be had: {error}")
    controller, plain = free_ports(2)
    ports = {"CONTROLLER": controller, "PLAINTEXT": plain}
    place = folder / "kafka"
    place.mkdir()
    config = NodeConfig(1, ports, {1: controller}, place / "data", host=f"[{HOST}]")
    with held(place / "lock", fcntl.LOCK_SH):
        node = Node(config, files, place, place / "lock")
        node.start()
        try:
            await asyncio.to_thread(node.wait_until_ready, {1})
            await asyncio.to_thread(KafkaAdmin(node.address).create_topic, "events", 1, 1, {})
            yield node.address, "events"
        finally:
            node.kill()


async def test_everything_works_over_ipv6(tmp_path: Path, proves):
    for what in ("http.listen and http.probes_listen", "sink webhook", "sink splunk", "sink syslog, TCP",
                 "sink syslog, UDP", "sink kafka", "sink mqtt", "approval source mqtt"):  # fmt: skip
        proves("IPv6", what, "loopback", "sends" if "sink" in what else "listens")
    heard: dict[str, list[bytes]] = {name: [] for name in ("webhook", "splunk", "tcp", "udp")}
    async with (
        receivers(heard) as ports,
        mosquitto(tmp_path) as mqtt,
        kafka(tmp_path) as (broker, topic),
    ):
        api, probes = free_ports(2)
        url = f"http://[{HOST}]:{ports['http']}"
        sinks: dict[str, Any] = {
            "webhook": {"type": "webhook", "url": f"{url}/hook"},
            "splunk": {"type": "splunk", "url": url, "token": "t"},
            "tcp": {"type": "syslog", "address": f"tcp://[{HOST}]:{ports['tcp']}"},
            "udp": {"type": "syslog", "address": f"udp://[{HOST}]:{ports['udp']}"},
            "kafka": {"type": "kafka", "bootstrap_servers": [broker], "topic": topic},
            "mqtt": {"type": "mqtt", "host": HOST, "port": mqtt},
        }
        votes = {"votes": {"sink": "mqtt", "topic": "votes", "trust": "transport"}}
        http = {
            "listen": f"[{HOST}]:{api}",
            "probes_listen": f"[{HOST}]:{probes}",
            "tokens": [{"name": "orders", "token": TOKEN}],
        }
        async with stage(tmp_path, sinks=sinks, approvals={"from": votes}, http=http) as at:
            event = announce(at, "reboot", started_for=None)
            await at.start()
            for name in heard:
                await until(partial(_heard, heard, name, event), name, at.output)
            await until(lambda: _in_kafka(broker, topic, event), "kafka", at.output)
            await at.until_said("http.listening")
            await at.until_said("approvals.connected")
            async with aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {TOKEN}"}
            ) as session:
                async with session.get(f"http://[{HOST}]:{api}/api/v1/events") as answer:
                    assert event in await answer.text()
                async with session.get(f"http://[{HOST}]:{probes}/livez") as answer:
                    assert answer.status == 200
            command = [str(tool("mosquitto_pub", "mosquitto-clients")), "-h", HOST, "-p", str(mqtt)]
            said = ["-V", "5", "-q", "1", "-t", "votes", "-m", vote(event)]
            await asyncio.to_thread(subprocess.run, [*command, *said], check=True, timeout=20)
            await approved(at, event)
            assert await at.stop() == 0


def _heard(heard: dict[str, list[bytes]], name: str, event: str) -> bool:
    return event.encode() in b"".join(heard[name])


async def _in_kafka(broker: str, topic: str, event: str) -> bool:
    return any(one.key == event.encode() for one in await read_topic(broker, topic))
