#!/usr/bin/env python3
"""How many modules of `bridge` and `sinks` a transition, an approval, a drill and a reload use.

The script runs the real bridge between `seb simulate`, an in-memory Kafka and a file sink, and
`walks_tracer.py` notes in the bridge's process which modules run while a walk lasts.

The transition has a bridge of its own with nothing but a file sink; polling is part of that walk.
The other walks share a second bridge. "modules" is all that runs while the walk lasts. "not idle"
leaves out what the same bridge also runs in 5 seconds in which nothing happens and scheduled events
are pending; a walk takes less. A poll may or may not fall into a walk, so compare two trees by
"not idle". The script knows the bridge only from outside: run it with the `.venv/bin/python` of
each tree.
"""

import argparse
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka import Producer

Walks = dict[str, list[str]]

IDLE_SECONDS = 5.0
SETTLED_SECONDS = 0.5
"""What is seen outside is settled in the journal a moment later."""
PATIENCE = 30.0
TRACER = Path(__file__).with_name("walks_tracer.py")
TOPIC = "approvals"
TOKEN = "walks"  # noqa: S105  it opens nothing but this simulation
PLAIN = {"transition", "idle"}
"""Walks of which idling is a part."""


def until(found: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {PATIENCE:g} s")
        time.sleep(0.05)


def ask(method: str, url: str, body: object = None, *, status: int = 200) -> Any:
    """The JSON that this machine answers with that status; proxy variables are not read."""
    parts = urlsplit(url)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", parts.port)) as connection:
        connection.request(method, parts.path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        said = answer.read()
    if answer.status != status:
        raise RuntimeError(f"{method} {url}: {answer.status} instead of {status}, {said!r}")
    return json.loads(said)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def child(command: list[str], folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """A process that ends with the block; what it said is shown when something fails."""
    with (folder / "said").open("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)  # noqa: S603  our own programs
        try:
            yield process
        except BaseException:
            sys.stderr.write((folder / "said").read_text(encoding="utf-8")[-4000:])
            raise
        finally:
            process.terminate()
            process.wait(PATIENCE)


class Kafka:
    """librdkafka's in-memory broker, which lives in this process."""

    def __init__(self) -> None:
        mock = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}
        self._producer = Producer(mock)
        brokers = self._producer.list_topics(TOPIC, timeout=10).brokers.values()
        servers = [f"{one.host}:{one.port}" for one in brokers]
        self.source = {"type": "kafka", "bootstrap_servers": servers, "topic": TOPIC}

    def vote(self, event_id: str) -> None:
        self._producer.produce(TOPIC, json.dumps({"eventId": event_id, "approver": "orders"}))
        self._producer.flush(PATIENCE)


@contextlib.contextmanager
def simulator(folder: Path) -> Generator[str]:
    """The endpoint of an Azure where nothing happens by itself."""
    scenario, port = folder / "quiet.yaml", free_port()
    scenario.write_text("description: quiet\n", encoding="utf-8")
    seb = str(Path(sys.executable).with_name("seb"))
    with child([seb, "simulate", "--scenario", str(scenario), "--port", str(port)], folder):
        until(lambda: answers(port), "the simulator")
        yield f"http://127.0.0.1:{port}"


@dataclass(slots=True)
class Bridge:
    """A traced bridge with a file sink between Azure and the API, and what its walks used."""

    folder: Path
    azure: str
    sources: dict[str, Any]
    api: str = field(default_factory=lambda: f"http://127.0.0.1:{free_port()}")
    walks: Walks = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    @contextlib.contextmanager
    def running(self) -> Generator["Bridge"]:
        self.folder.mkdir()
        self.configure("first")
        command = [sys.executable, str(TRACER), str(self.folder / "config.yaml")]
        with child(command, self.folder) as self.process:
            self.see("configuration.loaded")
            time.sleep(SETTLED_SECONDS)
            yield self

    def configure(self, record: str) -> None:
        settings = {
            "source": {"endpoint": self.azure, "poll_interval": "1s"},
            "state_dir": str(self.folder / "state"),
            "sinks": {"record": {"type": "file", "path": str(self.folder / record)}},
            "approvals": {"from": self.sources},
            "http": {
                "listen": self.api.removeprefix("http://"),
                "tokens": [
                    {"name": "walks", "token": TOKEN, "scopes": ["read", "approve", "operate"]}
                ],
            },
        }
        (self.folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")

    @contextlib.contextmanager
    def walk(self, name: str) -> Generator[None]:
        self._seen()
        yield
        time.sleep(SETTLED_SECONDS)
        self.walks[name] = self._seen()

    def _seen(self) -> list[str]:
        """The modules since it was last asked."""
        file = self.folder / "seen.json"
        file.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        until(file.exists, "what the tracer saw")
        return list(json.loads(file.read_text(encoding="utf-8")))

    def see(self, *words: str, record: str = "first") -> None:
        """Wait for a line of the sink's file that has all these words."""
        file = self.folder / record

        def found() -> bool:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            return any(all(word in line for word in words) for line in lines)

        until(found, f"{' '.join(words)} in {file}")

    def announce(self, name: str) -> str:
        """Azure announces a Reboot that does not start within a walk, approved or not."""
        keys = {"type": "Reboot", "name": name, "notice": "30m", "starts_after_approval": "20m"}
        created = ask("POST", f"{self.azure}/control/events", keys, status=201)
        self.see(".scheduled.v1", created["eventId"])
        return str(created["eventId"])

    def pending(self, name: str) -> str:
        event_id = self.announce(name)
        time.sleep(SETTLED_SECONDS)
        return event_id

    def vote(self, event_id: str) -> None:
        ask("POST", f"{self.api}/api/v1/approvals", {"eventId": event_id}, status=202)

    def granted(self, event_id: str) -> None:
        until(lambda: self.posted(event_id), "the POST to Azure")
        self.see(".approval.granted.v1", event_id)

    def posted(self, event_id: str) -> bool:
        return event_id in json.dumps(ask("GET", f"{self.azure}/control/approvals"))

    def check_settled(self) -> None:
        (sink,) = ask("GET", f"{self.api}/api/v1/sinks")["sinks"]
        if (sink["state"], sink["waiting"], sink["dead"]) != ("connected", 0, 0):
            raise RuntimeError(f"the sink is not settled: {sink}")


def transition(bridge: Bridge, name: str) -> None:
    with bridge.walk(name):
        bridge.announce(name)


def idle(bridge: Bridge, name: str) -> None:
    bridge.pending(name)
    with bridge.walk(name):
        time.sleep(IDLE_SECONDS)


def kafka_approval(bridge: Bridge, name: str, kafka: Kafka) -> None:
    event_id = bridge.pending(name)
    with bridge.walk(name):
        kafka.vote(event_id)
        bridge.granted(event_id)


def http_approval(bridge: Bridge, name: str) -> None:
    event_id = bridge.pending(name)
    with bridge.walk(name):
        bridge.vote(event_id)
        bridge.granted(event_id)


def drill(bridge: Bridge, name: str) -> None:
    plan, drills = {"eventType": "Reboot", "duration": "1s"}, f"{bridge.api}/api/v1/drills"
    with bridge.walk(name):
        event_id = ask("POST", drills, plan, status=201)["eventId"]
        bridge.see(".scheduled.v1", event_id)
        bridge.vote(event_id)
        bridge.see(".completed.v1", event_id)
        report = ask("GET", f"{drills}/{event_id}")
    if not report["passed"] or bridge.posted(event_id):
        raise RuntimeError(f"the drill failed: {report}")


def reload(bridge: Bridge, name: str) -> None:
    bridge.configure("second")
    with bridge.walk(name):
        bridge.process.send_signal(signal.SIGHUP)
        bridge.see("configuration.loaded", '"reload"', record="second")


def take_walks(folder: Path) -> Walks:
    kafka = Kafka()
    sources = {"bus": {**kafka.source, "trust": "transport"}}
    with simulator(folder) as azure:
        with Bridge(folder / "plain", azure, {}).running() as plain:
            transition(plain, "transition")
            plain.check_settled()
        with Bridge(folder / "voting", azure, sources).running() as voting:
            idle(voting, "idle")
            kafka_approval(voting, "Kafka approval", kafka)
            http_approval(voting, "HTTP approval")
            drill(voting, "drill")
            voting.check_settled()
            reload(voting, "reload")
            voting.check_settled()
    return {**plain.walks, **voting.walks}


def show(walks: Walks, *, listed: bool) -> None:
    idling = walks["idle"]
    print(f"{'walk':<16}{'modules':>8}{'not idle':>10}")
    for name, modules in walks.items():
        rest = len(set(modules).difference(idling))
        print(f"{name:<16}{len(modules):>8}{'-' if name in PLAIN else rest:>10}")
    for name, modules in walks.items() if listed else ():
        print(f"\n{name}")
        for one in modules:
            print(f"  {one}{'  (idle)' if one in idling and name not in PLAIN else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the modules, by first call")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seb-walks-") as folder:
        show(take_walks(Path(folder)), listed=args.list)


if __name__ == "__main__":
    main()
