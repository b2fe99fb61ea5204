"""One channel for each sink that is measured, whatever server it needs."""

import contextlib
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.servers.brokers import Kafka, Mosquitto, kafka, mosquitto
from bench.servers.receivers import command, file, splunk, stdout, syslog, webhook
from bench.servers.tally import Channel

SINKS = ("kafka", "mqtt", "webhook", "syslog", "splunk", "file", "stdout", "command")


@dataclass(frozen=True, slots=True)
class Servers:
    """The brokers, which several channels share."""

    folder: Path
    kafka: Kafka | None = None
    mosquitto: Mosquitto | None = None

    def channel(self, sink: str) -> AbstractAsyncContextManager[Channel]:
        """A new channel for a sink of this type; nothing has arrived there yet."""
        if sink == "kafka" and self.kafka is not None:
            return self.kafka.channel("events")
        if sink == "mqtt" and self.mosquitto is not None:
            return self.mosquitto.channel("events")
        ways: dict[str, Callable[[], AbstractAsyncContextManager[Channel]]] = {
            "webhook": webhook,
            "syslog": syslog,
            "splunk": splunk,
            "file": lambda: file(self._place()),
            "stdout": lambda: stdout(self._place()),
            "command": lambda: command(self._place()),
        }
        return ways[sink]()

    def _place(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))


@contextlib.asynccontextmanager
async def servers(sinks: Sequence[str] = SINKS) -> AsyncGenerator[Servers]:
    """What these sinks need, until the context ends."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield Servers(
            folder,
            await stack.enter_async_context(kafka()) if "kafka" in sinks else None,
            await stack.enter_async_context(mosquitto()) if "mqtt" in sinks else None,
        )
