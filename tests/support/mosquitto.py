"""Mosquitto for the tests: a real broker that is started, stopped, killed and started again."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from support import lifeline
from support.certificates import Certificates
from support.debian import tool
from support.lacking import lacking
from support.lifeline import held
from support.ports import free_ports

HOST = "127.0.0.1"
START = 20.0
_TLS = {
    "TLS": "server",
    "MTLS": "server",
    "EXPIRED": "expired_server",
    "WRONG_HOST": "wrong_host_server",
    "WSS": "server",
}


class BrokerFailed(Exception):
    """It did not start, or is not what it should be; its log says why."""


@dataclass
class Mosquitto:
    """A broker with a plain listener; `certificates` and `websockets` add others by name.

    `users` are names with passwords, and without any everybody is let in; `acl` is the text of an
    access list; `more` are lines of mosquitto.conf, such as `max_inflight_messages`.
    """

    folder: Path
    users: Mapping[str, str] = field(default_factory=dict)
    acl: str = ""
    certificates: Certificates | None = None
    websockets: bool = False
    persistent: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    host: str = HOST
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def port(self) -> int:
        return self.ports["PLAIN"]

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "mosquitto.log"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(held(self._lock, fcntl.LOCK_SH))
        names = self._listeners()
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._held.close()

    def start(self) -> None:
        """On the same ports each time; what it kept on disk is there again if `persistent`."""
        self.configure()
        command = [str(tool("mosquitto")), "-c", str(self.folder / "mosquitto.conf")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-S", lifeline.__file__, str(self._lock), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait()

    def stop(self) -> None:
        """In order: it says goodbye to its clients and saves what it keeps."""
        assert self.process is not None
        self._signal(signal.SIGTERM)
        self.process.wait(START)

    def kill(self) -> None:
        """As a power cut does. Does nothing to one that is dead."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            give_up = time.monotonic() + START
            while time.monotonic() < give_up and any(map(self._listens, self.ports.values())):
                time.sleep(0.005)  # it is not our child, so its ports tell when it is gone

    def save(self) -> None:
        """All that it has acknowledged is on disk when this returns: it does not wait for that itself."""
        before = self._saved()
        self._signal(signal.SIGUSR1)
        self._until(lambda: self._saved() > before)

    def _saved(self) -> int:
        file = self.folder / "mosquitto.db"
        return file.stat().st_mtime_ns if file.exists() else 0

    def reload(self, **changes: Any) -> None:
        """Take up other users or another access list while it runs."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.configure()
        before = self.tail().count("Reloading config")
        self._signal(signal.SIGHUP)
        self._until(lambda: self.tail().count("Reloading config") > before)

    def _signal(self, number: signal.Signals) -> None:
        os.kill(int((self.folder / "pid").read_text()), number)

    def tail(self, lines: int = 2000) -> str:
        found = self.log.read_text(errors="replace").splitlines()
        return "\n".join([*found[-lines:], str(self.log)])

    def configure(self) -> None:
        lines = ["log_dest stderr", "log_type all", f"pid_file {self.folder / 'pid'}"]
        if os.geteuid() == 0:
            lines.append("user root")
        if self.persistent:
            lines += ["persistence true", f"persistence_location {self.folder}/"]
            lines += ["autosave_on_changes true", "autosave_interval 1"]
        lines += [f"{name} {value}" for name, value in self.more.items()]
        lines += self._access()
        for name, port in self.ports.items():
            lines += self._listener(name, port)
        (self.folder / "mosquitto.conf").write_text("".join(f"{line}\n" for line in lines))

    def _access(self) -> list[str]:
        lines = [f"allow_anonymous {'false' if self.users else 'true'}"]
        if self.users:
            file = self.folder / "passwords"
            file.write_text("".join(f"{name}:{word}\n" for name, word in self.users.items()))
            file.chmod(0o600)
            hashing = [str(tool("mosquitto_passwd", "mosquitto")), "-U", str(file)]
            subprocess.run(hashing, check=True, capture_output=True, timeout=START)
            lines.append(f"password_file {file}")
        if self.acl:
            file = self.folder / "acl"
            file.write_text(self.acl)
            file.chmod(0o600)
            lines.append(f"acl_file {file}")
        return lines

    def _listeners(self) -> list[str]:
        named = [
            "PLAIN",
            *(_TLS if self.certificates else ()),
            *(["WS"] if self.websockets else ()),
        ]
        return [name for name in named if name != "WSS" or self.websockets]

    def _listener(self, name: str, port: int) -> list[str]:
        lines = [f"listener {port} {self.host}"]
        if name in {"WS", "WSS"}:
            lines.append("protocol websockets")
        if name in _TLS and self.certificates is not None:
            identity = getattr(self.certificates, _TLS[name])
            lines += [f"certfile {identity.certificate}", f"keyfile {identity.key}"]
        if name == "MTLS" and self.certificates is not None:
            lines += [f"cafile {self.certificates.authority}", "require_certificate true"]
            lines.append("use_identity_as_username true")
        return lines

    @property
    def _lock(self) -> Path:
        return self.folder / "users.lock"

    def _wait(self) -> None:
        for port in self.ports.values():
            self._until(lambda port=port: self._listens(port))

    def _listens(self, port: int) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.host, port), 1):
            return True
        return False

    def _until(self, condition: Any) -> None:
        give_up = time.monotonic() + START
        while not condition():
            if self.process is None or self.process.poll() is not None:
                raise BrokerFailed(f"Mosquitto ended:\n{self.tail()}")
            if time.monotonic() > give_up:
                raise BrokerFailed(f"Mosquitto was not ready after {START:.0f} s:\n{self.tail()}")
            time.sleep(0.01)


@dataclass(frozen=True)
class OutsideBroker:
    """The broker that SEB_TEST_MQTT names: plain, open to all, and not ours to stop."""

    host: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def outside_broker() -> OutsideBroker | None:
    named = os.environ.get("SEB_TEST_MQTT")
    if not named:
        return None
    host, _, port = named.rpartition(":")
    return OutsideBroker(host, int(port))


def must_be_ours() -> None:
    """For tests that need a broker of their own, with settings that they choose."""
    if outside_broker() is not None:
        lacking("the broker of SEB_TEST_MQTT is not ours to configure: leave the variable out")
