"""The image: built with buildah, looked at, and run against the simulator as its own user.

Here no image can be pulled, so BASE is a stand-in unless you name another one.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofs.roots import PATIENCE, ROOT, command, wait
from support.ports import free_ports

IMAGE = "localhost/scheduled-events-bridge:proof"
STATE = "/var/lib/scheduled-events-bridge"
MOST_MEGABYTES = 320
"""With a Debian and a Python below it."""
ENVIRONMENT = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs", **os.environ}
WRITABLE = "find / -xdev -type d -writable -not -path '/proc*' 2>/dev/null; true"
EVERY_SINK = """
sinks:
  bus: {type: kafka, bootstrap_servers: ["127.0.0.1:9092"]}
  floor: {type: mqtt, host: 127.0.0.1}
  hook: {type: webhook, url: "http://127.0.0.1:9"}
  siem: {type: syslog, address: "tcp://127.0.0.1:514", format: cef}
  own: {type: stdout, format: {type: template, template: "{{ type }}"}}
approvals:
  from: {floor: {sink: floor, topic: votes, trust: signed}}
  allow: [{approver: orders, keys: [{ed25519: KEY}]}]
"""
SEB = ROOT / ".venv" / "bin" / "seb"
KEY = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="


def main() -> None:
    build()
    config = json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]
    look(config)
    container = buildah("from", "--pull-never", IMAGE).strip()
    try:
        contents(container)
        with tempfile.TemporaryDirectory(prefix="proof-") as made:
            live(container, Path(made))
    finally:
        buildah("rm", container)


def buildah(*words: object) -> str:
    return command("buildah", *words, env=ENVIRONMENT)


def build() -> None:
    began = time.monotonic()
    env = {**ENVIRONMENT, **builder(), "IMAGE": IMAGE}
    command(ROOT / "scripts" / "image", env=env)
    print(f"  {time.monotonic() - began:6.1f} s  image built on {env['BASE']}", flush=True)


def builder() -> dict[str, str]:
    """What scripts/image needs here: BASE, and for pip inside the certificates of this machine."""
    base = os.environ.get("BASE") or command(ROOT / "scripts" / "stand-in-base", env=ENVIRONMENT)
    places = [name for name in ("/etc/ssl/certs", "/etc/pip.conf") if Path(name).exists()]
    flags = ["--pull-never --network host", *(f"-v {name}:{name}:ro" for name in places)]
    return {"BUILDER": "buildah", "BASE": base.strip(), "BUILD_FLAGS": " ".join(flags)}


def look(config: dict[str, Any]) -> None:
    assert config["User"] == "65532:65532"
    assert list(config["Volumes"]) == [STATE]
    assert config["Healthcheck"]["Test"] == ["CMD", "seb", "health"]
    assert (config["Entrypoint"], config["Cmd"]) == (["seb"], ["run"])
    shown = buildah("images", "--format", "{{.Size}}", IMAGE).split()
    size, unit = float(shown[0]), shown[1]
    assert unit == "MB" and size < MOST_MEGABYTES, shown  # noqa: PT018  one fact
    print(f"  {size:.0f} MB with its base, user {config['User']}", flush=True)


def inside(container: str, *words: str) -> str:
    return buildah("run", container, "--", *words)


def contents(container: str) -> None:
    """The user may write the volume and what every system lets it; all plugins are there."""
    writable = set(inside(container, "sh", "-c", WRITABLE).split())
    usual = {
        "/tmp",
        "/var/tmp",
        "/run/lock",
        "/dev/shm",
        "/dev/mqueue",
        "/run",
        "/dev",
        "/var/lock",
    }
    assert writable - usual == {STATE}, writable
    assert inside(container, "id", "-u").strip() == "65532"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(EVERY_SINK.replace("KEY", KEY))
        file.flush()
        Path(file.name).chmod(0o644)
        mount = ("-v", f"{file.name}:/etc/scheduled-events-bridge/config.yaml:ro")
        told = buildah("run", *mount, container, "--", "seb", "check")
    print(f"  seb check: {len(told.splitlines())} sentences", flush=True)


def live(container: str, folder: Path) -> None:
    """An event, a probe and an approval."""
    [port] = free_ports(1)
    config = folder / "config.yaml"
    config.write_text(
        f"source: {{endpoint: 'http://127.0.0.1:{port}', poll_interval: 200ms}}\n"
        f"sinks: {{events: {{type: file, path: {STATE}/events.jsonl}}}}\n"
        "http: {listen: null}\n"
    )
    folder.chmod(0o755)
    config.chmod(0o644)
    mount = ("-v", f"{config}:/etc/scheduled-events-bridge/config.yaml:ro")
    began = time.monotonic()
    with (
        background(folder / "simulate", SEB, "simulate", "--port", port, "--vm-name", "vm-0"),
        background(folder / "run", "buildah", "run", *mount, container, "--", "seb", "run") as log,
    ):
        told = wait(lambda: published(container, "scheduled"), "the event", log.read_text)
        print(f"  {time.monotonic() - began:6.1f} s  the event is delivered", flush=True)
        buildah("run", *mount, container, "--", "seb", "health")
        said = buildah("run", *mount, container, "--", "seb", "approve", told[0]["subject"])
        wait(lambda: published(container, "approval.granted"), "the grant", log.read_text)
        print(f"  seb approve: {said.strip()}", flush=True)
        assert inside(container, "stat", "-c", "%u %a", f"{STATE}/journal.db").split() == [
            "65532",
            "600",
        ]


def published(container: str, kind: str) -> list[dict[str, Any]]:
    """The CloudEvents of this kind in the volume."""
    text = inside(container, "sh", "-c", f"cat {STATE}/events.jsonl 2>/dev/null; true")
    every = [json.loads(line) for line in text.splitlines()]
    return [one for one in every if one["type"] == f"azure.scheduledevents.{kind}.v1"]


@contextlib.contextmanager
def background(log: Path, *words: object) -> Iterator[Path]:
    """Run it, and end it and what it started with SIGTERM."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=ENVIRONMENT,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield log
        assert process.poll() is None, log.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)
