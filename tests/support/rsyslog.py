"""rsyslog for the tests: a real receiver over UDP, TCP and TLS that is killed and started again."""

import contextlib
import fcntl
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from support import lifeline
from support.certificates import Certificates
from support.debian import tool
from support.lacking import lacking
from support.lifeline import held
from support.ports import free_ports
from support.scripts import Unobtainable, run_script

HOST = "127.0.0.1"
START = 20.0
TLS_MODULE = "*/rsyslog/lmnsd_gtls.so"
# One line for each message: what rsyslog made of the header, tabs between, and the text as it came.
TEMPLATE = (
    "%pri%\\t%timestamp:::date-rfc3339%\\t%hostname%\\t%app-name%\\t%procid%\\t%msgid%"
    "\\t%structured-data%\\t%msg%\\n"
)


class ReceiverFailed(Exception):
    """It did not start; its log says why."""


@dataclass(frozen=True)
class Message:
    """One message as rsyslog understood it."""

    priority: int
    timestamp: str
    hostname: str
    app_name: str
    procid: str
    msgid: str
    data: str
    text: bytes

    @property
    def envelope(self) -> dict[str, Any]:
        return json.loads(self.text)


def parse(line: bytes) -> Message:
    priority, *fields, text = line.split(b"\t", 7)
    return Message(int(priority), *(part.decode() for part in fields), text)


@dataclass
class Rsyslog:
    """Listens on `ports` UDP, TCP and, with certificates, TLS and MTLS; writes all to one file."""

    folder: Path
    certificates: Certificates | None = None
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def address(self, scheme: str, name: str | None = None) -> str:
        return f"{scheme}://{HOST}:{self.ports[name or scheme.upper()]}"

    @property
    def file(self) -> Path:
        return self.folder / "messages"

    @property
    def log(self) -> Path:
        return self.folder / "rsyslogd.log"

    def messages(self, hostname: str | None = None) -> list[Message]:
        """All, or those from one host; an unfinished line is not there yet."""
        content = self.file.read_bytes() if self.file.exists() else b""
        found = [parse(line) for line in content.split(b"\n")[:-1]]
        return [message for message in found if hostname in {None, message.hostname}]

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(held(self._lock, fcntl.LOCK_SH))
        names = ["UDP", "TCP", *(["TLS", "MTLS"] if self.certificates else [])]
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._held.close()

    def start(self) -> None:
        """On the same ports each time, and to the same file."""
        (self.folder / "rsyslog.conf").write_text("\n".join(self._configuration()) + "\n")
        (self.folder / "pid").unlink(missing_ok=True)
        options = ["-n", "-f", str(self.folder / "rsyslog.conf"), "-i", str(self.folder / "pid")]
        command = [str(tool("rsyslogd", "rsyslog")), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-S", lifeline.__file__, str(self._lock), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "RSYSLOG_MODDIR": str(modules())},
            )
        self._wait()

    def kill(self) -> None:
        """As a power cut does. Does nothing to one that is dead."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._until(lambda: not _alive(self.folder / "pid"))

    def stop(self) -> None:
        """In order: it writes down what it has read, and leaves what it has not."""
        assert self.process is not None
        self._signal(signal.SIGTERM)
        self.process.wait(START)

    def pause(self) -> None:
        """It reads nothing any more, while its machine goes on taking bytes."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _signal(self, number: signal.Signals) -> None:
        os.kill(int((self.folder / "pid").read_text()), number)

    @property
    def _lock(self) -> Path:
        return self.folder / "users.lock"

    def _configuration(self) -> Iterator[str]:
        yield 'global(maxMessageSize="128k" parser.escapeControlCharactersOnReceive="off"'
        if self.certificates is not None:
            server = self.certificates.server
            yield f'  defaultNetstreamDriverCAFile="{self.certificates.authority}"'
            yield f'  defaultNetstreamDriverCertFile="{server.certificate}"'
            yield f'  defaultNetstreamDriverKeyFile="{server.key}"'
        yield f'  workDirectory="{self.folder}")'
        yield 'module(load="imudp")'
        yield 'module(load="imtcp")'
        yield f'template(name="parts" type="string" string="{TEMPLATE}")'
        yield f'input(type="imudp" address="{HOST}" port="{self.ports["UDP"]}")'
        for name, port in self.ports.items():
            if name != "UDP":
                yield f'input(type="imtcp" address="{HOST}" port="{port}"{_driver(name)})'
        yield f'action(type="omfile" file="{self.file}" template="parts" fileCreateMode="0600")'

    def _wait(self) -> None:
        tcp = [port for name, port in self.ports.items() if name != "UDP"]
        pid = self.folder / "pid"
        self._until(lambda: not self.runs or (_alive(pid) and all(_listens(port) for port in tcp)))
        if not self.runs:
            raise ReceiverFailed(f"rsyslog ended:\n{self.log.read_text(errors='replace')}")

    def _until(self, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + START
        while not condition():
            if time.monotonic() > give_up:
                said = self.log.read_text(errors="replace")
                raise ReceiverFailed(f"rsyslog took longer than {START:.0f} s:\n{said}")
            time.sleep(0.01)


def _driver(name: str) -> str:
    if name == "TCP":
        return ""
    auth = "x509/certvalid" if name == "MTLS" else "anon"
    return f' streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="{auth}"'


@functools.cache
def modules() -> Path:
    """Where rsyslog's plugins are, those for TLS among them; they come in a package of their own."""
    root = Path("/")
    found = [*root.glob(f"usr/lib/{TLS_MODULE}"), *root.glob("usr/lib*/rsyslog/lmnsd_gtls.so")]
    if not found:
        try:
            unpacked = run_script("debian-packages", "rsyslog", "rsyslog-gnutls")
        except Unobtainable as error:
            lacking(f"rsyslog-gnutls is not to be had: {error}")
        root = Path(unpacked).parent / "root" if unpacked else root
        found = list(root.glob(f"usr/lib/{TLS_MODULE}"))
    if not found:
        lacking("rsyslog-gnutls brings no plugin for TLS")
    return found[0].parent


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False


def _alive(pid: Path) -> bool:
    """A zombie is not: its connections are closed."""
    with contextlib.suppress(OSError, ValueError):
        status = Path(f"/proc/{int(pid.read_text())}/stat").read_text()
        return status.rpartition(")")[2].split()[0] != "Z"
    return False
