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

from proofs.roots import PATIENCE, ROOT, command, kinds, wait
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


def build(archive: Path | None = None) -> None:
    """Build it on what BASE names; pip inside sees the certificates of this machine."""
    began = time.monotonic()
    base = os.environ.get("BASE") or command(ROOT / "scripts" / "stand-in-base", env=ENVIRONMENT)
    mounts = [f"-v {name}:{name}:ro" for name in ("/etc/ssl/certs", "/etc/pip.conf") if Path(name).exists()]
    env = {
        **ENVIRONMENT,
        "BUILDER": "buildah",
        "BASE": base.strip(),
        "IMAGE": IMAGE,
        "BUILD_FLAGS": " ".join(["--pull-never --network host", *mounts]),
    }
    command(ROOT / "scripts" / "image", env=env)
    print(f"  {time.monotonic() - began:6.1f} s  image built on {base.strip()}", flush=True)


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
    usual = {"/tmp", "/var/tmp", "/run/lock", "/dev/shm", "/dev/mqueue", "/run", "/dev", "/var/lock"}  # noqa: S108  names
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
    state = folder / "state"
    state.mkdir()
    os.chown(state, 65532, 65532)
    mounts = (
        "-v", f"{config}:/etc/scheduled-events-bridge/config.yaml:ro", "-v", f"{state}:{STATE}",
    )  # fmt: skip
    seb = Path(os.environ.get("SEB", ROOT / ".venv" / "bin" / "seb"))
    events = state / "events.jsonl"
    began = time.monotonic()
    with (
        background(folder / "simulate", seb, "simulate", "--port", port, "--vm-name", "vm-0"),
        background(folder / "run", "buildah", "run", *mounts, container, "--", "seb", "run") as log,
    ):
        wait(lambda: "scheduled.v1" in kinds(events), "the event", log.read_text)
        print(f"  {time.monotonic() - began:6.1f} s  the event is delivered", flush=True)
        buildah("run", *mounts, container, "--", "seb", "health")
        first = next(line for line in events.read_text().splitlines() if ".scheduled.v1" in line)
        event = json.loads(first)["subject"]
        told = buildah("run", *mounts, container, "--", "seb", "approve", event)
        wait(lambda: "approval.granted.v1" in kinds(events), "the grant", log.read_text)
        print(f"  seb approve: {told.strip()}", flush=True)
        assert (state / "journal.db").stat().st_uid == 65532


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
