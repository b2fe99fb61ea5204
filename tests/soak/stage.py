"""Everything that runs in a soak: simulator, brokers, proxies, receivers and bridges."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import trustme
from soak.bridges import Bridge, build_kernel
from soak.ledger import Ledger
from soak.network import MoodyKafka, MoodyProxy, Place
from soak.observer import Observer
from soak.program import VMS
from soak.receivers import Floor, Hook, Lines, Siem, from_kafka
from soak.settings import DRAINED, EVENTS, MQTT_EVENTS, SINKS, VOTES, config, judged
from support.certificates import HERE
from support.kafka_broker import Cluster, cluster
from support.kafka_reader import read_topic
from support.mosquitto import Mosquitto
from support.mosquitto_clients import mosquitto_sub
from support.ports import free_ports
from support.rsyslog_stand_in import Receiver as SyslogReceiver

from bridge.simulator import Scenario, Simulator
from bridge.simulator.world.world import World

Json = dict[str, Any]


@dataclass
class Authority:
    """Signs the webhook receiver's certificates; the bridges trust its file."""

    file: Path

    def __post_init__(self) -> None:
        self.rotate()

    def rotate(self) -> None:
        """A new authority with a new certificate, in the file that the bridges read."""
        authority = trustme.CA()
        self.file.with_suffix(".new").write_bytes(authority.cert_pem.bytes())
        self.file.with_suffix(".new").replace(self.file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*HERE).configure_cert(self.context)


@dataclass
class Stage:
    """The parts by name, and the ledger that they write."""

    folder: Path
    ledger: Ledger
    simulator: Simulator
    kafka: Cluster
    mosquitto: Mosquitto
    places: dict[str, Place]
    hook: Hook
    syslog: SyslogReceiver
    authority: Authority
    bridges: dict[str, Bridge]
    watched: list[Lines | Siem | Floor]
    began: float
    mqtt_gate: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the MQTT server is being killed: it forgets what it confirmed after its last save."""
    notice_loss: list[Callable[[str], None]] = field(default_factory=list)
    """Called with a channel on which votes may have been lost."""

    @property
    def world(self) -> World:
        return self.simulator.world

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    def votes_lost(self, channel: str) -> None:
        """Tell the voters to repeat what they sent on this channel."""
        for notice in self.notice_loss:
            notice(channel)

    async def watch(self) -> None:
        """Note what arrives where, until canceled."""
        while True:
            self.look_around()
            await asyncio.sleep(0.1)

    def look_around(self) -> None:
        at = self.now()
        for source in self.watched:
            self.ledger.deliveries += source.news(at)

    async def sample(self) -> None:
        """Note once a second what each process uses, and whether it is ready, until canceled."""
        while True:
            for bridge in self.bridges.values():
                found = await bridge.sample(self.now())
                if found is not None:
                    self.ledger.samples.append(found)
            await asyncio.sleep(1)

    async def collect(self) -> None:
        """Once everything has stopped: the topic, the hook's deliveries and the journals."""
        records = await read_topic(self.kafka.bootstrap, EVENTS)
        started = datetime.fromisoformat(self.ledger.started).timestamp()
        self.look_around()
        self.ledger.deliveries += [*from_kafka(records, started), *self.hook.deliveries]
        for bridge in self.bridges.values():
            self.ledger.rows += bridge.rows()
        self.ledger.truth = list(self.simulator.truth)


# --- setting it up -------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def stage(folder: Path, ledger: Ledger) -> AsyncGenerator[Stage]:
    """All of it, started; the bridges too."""
    folder.mkdir(parents=True, exist_ok=True)
    async with contextlib.AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(cluster(folder, ledger.nodes))
        mosquitto = Mosquitto(folder / "mosquitto", persistent=True)
        await asyncio.to_thread(stack.enter_context, mosquitto)
        observer = stack.enter_context(Observer(ledger))
        scenario = Scenario.model_validate({"name": "soak", "vms": [{"name": vm} for vm in VMS]})
        simulator = await stack.enter_async_context(
            Simulator(scenario, seed=ledger.seed, truth=folder / "truth.jsonl")
        )
        made = await _made(folder, ledger, simulator, kafka, mosquitto, stack)
        observer.watch(made.world, made.bridges, made.now)
        made.hook.clock = made.now
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for bridge in made.bridges.values():
            bridge.session = session
            stack.push_async_callback(bridge.kill)
            await bridge.start()
        yield made


async def _made(
    folder: Path,
    ledger: Ledger,
    simulator: Simulator,
    kafka: Cluster,
    mosquitto: Mosquitto,
    stack: contextlib.AsyncExitStack,
) -> Stage:
    began = time.monotonic()
    ledger.started, ledger.kafka, ledger.rules = datetime.now(UTC).isoformat(), kafka.kind, judged()
    ledger.sinks = {name: DRAINED if name == "drain" else {} for name in SINKS}
    await _make_topics(kafka, ledger.nodes)
    authority = Authority(folder / "authority.pem")
    hook = Hook(authority.context)
    await hook.up()
    stack.push_async_callback(hook.down)
    syslog = await stack.enter_async_context(SyslogReceiver())
    places = {
        "kafka": await _before_kafka(kafka),
        "mqtt": Place([MoodyProxy(("127.0.0.1", mosquitto.port))]),
        "webhook": Place([MoodyProxy(("127.0.0.1", hook.port))]),
    }
    for place in places.values():
        if place is not places["kafka"]:
            await place.up()
        stack.push_async_callback(place.down)
    addresses = {
        "kafka": [proxy.address for proxy in places["kafka"].proxies],
        "mqtt": places["mqtt"].proxies[0].port,
        "webhook": f"https://127.0.0.1:{places['webhook'].proxies[0].port}/hook",
        "syslog": syslog.address,
        "authority": str(authority.file),
    }
    recorder = mosquitto_sub(mosquitto, f"{MQTT_EVENTS}/#", "-c", "-i", "soak-recorder")
    floor = await stack.enter_async_context(recorder)
    bridges = _bridges(folder, simulator, addresses)
    watched: list[Lines | Siem | Floor] = [Siem(syslog), Floor(floor)]
    for bridge in bridges.values():
        watched += [Lines(bridge.folder / f"{s}.jsonl", s) for s in ("archive", "drain")]
    return Stage(
        folder, ledger, simulator, kafka, mosquitto, places, hook, syslog, authority, bridges,
        watched, began,
    )  # fmt: skip


async def _make_topics(kafka: Cluster, nodes: int) -> None:
    copies = min(3, nodes)
    settings = {"message.timestamp.type": "LogAppendTime"}
    if copies > 1:
        settings["min.insync.replicas"] = "2"
    await kafka.topic(3, name=EVENTS, replication=copies, config=settings)
    await make_votes_topic(kafka, nodes)


async def make_votes_topic(kafka: Cluster, nodes: int) -> None:
    copies = min(3, nodes)
    settings = {"min.insync.replicas": "2"} if copies > 1 else {}
    await kafka.topic(2, name=VOTES, replication=copies, config=settings)


async def _before_kafka(kafka: Cluster) -> Place:
    """One proxy for each node; they know each other's addresses."""
    nodes = [address.rpartition(":") for address in kafka.bootstrap.split(",")]
    proxies = [MoodyKafka((host, int(port))) for host, _, port in nodes]
    place = Place(proxies)
    await place.up()
    ports = {proxy.server[1]: proxy.port for proxy in proxies}
    for proxy in proxies:
        proxy.ports = ports
    return place


def _bridges(folder: Path, simulator: Simulator, addresses: Json) -> dict[str, Bridge]:
    kernel = build_kernel(folder)
    made = {}
    for vm, port in zip(VMS, free_ports(len(VMS)), strict=True):
        own = folder / vm
        made[vm] = Bridge(
            vm, own, config(addresses, own, simulator.endpoints[vm], port), port, kernel
        )
    return made
