"""rsyslog for the tests: a real receiver over UDP, TCP and TLS that is killed and started again."""

import functools
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from support.certificates import Certificates
from support.daemon import HOST, Daemon
from support.debian import tool
from support.lacking import lacking
from support.scripts import Unobtainable, run_script

TLS_MODULE = "*/rsyslog/lmnsd_gtls.so"
# One line for each message: what rsyslog made of the header, tabs between, and the text as it came.
TEMPLATE = (
    "%pri%\\t%timestamp:::date-rfc3339%\\t%hostname%\\t%app-name%\\t%procid%\\t%msgid%"
    "\\t%structured-data%\\t%msg%\\n"
)


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
    time, host, app, procid, msgid, data = (part.decode() for part in fields)
    return Message(int(priority), time, host, app, procid, msgid, data, text)


@dataclass
class Rsyslog(Daemon):
    """Listens on `ports` UDP, TCP and, with certificates, TLS and MTLS; writes all to one file."""

    certificates: Certificates | None = None

    def address(self, scheme: str, name: str | None = None) -> str:
        return f"{scheme}://{HOST}:{self.ports[name or scheme.upper()]}"

    @property
    def file(self) -> Path:
        return self.folder / "messages"

    def messages(self, hostname: str | None = None) -> list[Message]:
        """All, or those from one host; an unfinished line is not there yet."""
        content = self.file.read_bytes() if self.file.exists() else b""
        whole = [line for line in content.split(b"\n")[:-1] if line.count(b"\t") >= 7]
        found = [parse(line) for line in whole]
        return [message for message in found if hostname in {None, message.hostname}]

    @property
    def listeners(self) -> list[str]:
        return ["UDP", "TCP", *(["TLS", "MTLS"] if self.certificates else [])]

    def start(self) -> None:
        """On the same ports each time, and to the same file."""
        self._end_line()
        (self.folder / "rsyslog.conf").write_text("\n".join(self._configuration()) + "\n")
        options = ["-n", "-f", str(self.folder / "rsyslog.conf"), "-i", str(self.pid)]
        program = str(tool("rsyslogd", "rsyslog"))
        self.launch(program, *options, RSYSLOG_MODDIR=str(modules()))
        self.until_listening([port for name, port in self.ports.items() if name != "UDP"])

    def _end_line(self) -> None:
        """End an unfinished line of a killed process, so that it does not swallow the next one."""
        if self.file.exists() and not self.file.read_bytes().endswith(b"\n"):
            with self.file.open("ab") as file:
                file.write(b"\n")

    def pause(self) -> None:
        """Stop reading, while the kernel still accepts bytes; wait until every thread has stopped."""
        self.signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.pid.read_text().strip()}/task")
        for _ in range(1000):
            states = [one.read_text().rpartition(")")[2].split()[0] for one in tasks.glob("*/stat")]
            if set(states) == {"T"}:
                return
            sleep(0.005)
        raise TimeoutError("rsyslog does not stop")

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

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


def _driver(name: str) -> str:
    if name == "TCP":
        return ""
    auth = "x509/certvalid" if name == "MTLS" else "anon"
    return f' streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="{auth}"'


@functools.cache
def modules() -> Path:
    """Where rsyslog's plugins are, those for TLS among them; they come in a separate package."""
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
