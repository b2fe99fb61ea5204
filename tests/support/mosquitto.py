"""Mosquitto for the tests: a real broker that is started, stopped, killed and started again."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from support.certificates import Certificates
from support.daemon import HOST, START, Daemon
from support.debian import tool
from support.lacking import lacking

_TLS = {
    "TLS": "server",
    "MTLS": "server",
    "EXPIRED": "expired_server",
    "WRONG_HOST": "wrong_host_server",
    "WSS": "server",
}


@dataclass
class Mosquitto(Daemon):
    """A broker with a plain listener; `certificates` and `websockets` add others by name.

    `users` are names with passwords; without users, everyone may connect; `acl` is the text of an
    access list; `more` are lines of mosquitto.conf, such as `max_inflight_messages`.
    """

    users: Mapping[str, str] = field(default_factory=dict)
    acl: str = ""
    certificates: Certificates | None = None
    websockets: bool = False
    persistent: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    host: str = HOST

    @property
    def port(self) -> int:
        return self.ports["PLAIN"]

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def listeners(self) -> list[str]:
        named = [
            "PLAIN",
            *(_TLS if self.certificates else ()),
            *(["WS"] if self.websockets else ()),
        ]
        return [name for name in named if name != "WSS" or self.websockets]

    def start(self) -> None:
        """On the same ports each time; what it kept on disk is there again if `persistent`."""
        self.configure()
        self.launch(str(tool("mosquitto")), "-c", str(self.folder / "mosquitto.conf"))
        self.until_listening(list(self.ports.values()))

    def save(self) -> None:
        """All that it has acknowledged is on disk when this returns: it does not wait for that itself."""
        before = self._saved()
        self.signal(signal.SIGUSR1)
        self.until(lambda: self._saved() > before)

    def _saved(self) -> int:
        file = self.folder / "mosquitto.db"
        return file.stat().st_mtime_ns if file.exists() else 0

    def reload(self, **changes: Any) -> None:
        """Switch to other users or another access list while it runs."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.configure()
        before = self.tail().count("Reloading config")
        self.signal(signal.SIGHUP)
        self.until(lambda: self.tail().count("Reloading config") > before)

    def configure(self) -> None:
        lines = ["log_dest stderr", "log_type all", f"pid_file {self.pid}"]
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
    """For tests that need their own broker with their own settings."""
    if outside_broker() is not None:
        lacking("the broker of SEB_TEST_MQTT is not ours to configure: leave the variable out")
