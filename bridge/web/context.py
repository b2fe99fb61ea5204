"""What the handlers of one bridge share: the runtime, the open streams and the counters."""

import asyncio
from dataclasses import dataclass, field, replace

from aiohttp import web

from bridge.config import Config, fingerprint
from bridge.journal import views
from bridge.journal.cursors import backlog
from bridge.journal.store import Store
from bridge.runtime.runtime import Runtime
from bridge.web.access.sessions import Sessions
from bridge.web.health.metrics import Readings
from bridge.web.health.readiness import HealthView, Readiness, readiness
from bridge.web.limits import Limiter
from bridge.web.shared_reads import SharedReads
from bridge.web.stream import Streams

_READ_AGAIN = 1.0
_PATIENCE = 3.0


@dataclass(slots=True)
class WebContext:
    """The context of all addresses that a bridge serves."""

    runtime: Runtime
    streams: Streams = field(default_factory=Streams)
    limiter: Limiter = field(default_factory=Limiter)
    reads: SharedReads = field(default_factory=SharedReads)
    sessions: Sessions = field(default_factory=Sessions)
    url: str | None = None
    """Where this machine reaches the console."""
    tokens_refused: int = 0
    certificates_refused: int = 0
    started: float = 0.0
    _readings: Readings = field(default_factory=Readings)
    _read_at: float | None = None
    _hashed: tuple[Config, str] | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Compute the start as Unix time once: the two clocks drift apart."""
        self.started = round(self.wall(self.runtime.status.started) or 0.0, 3)

    def wall(self, monotonic: float | None) -> float | None:
        """A moment of the monotonic clock as Unix time."""
        clock = self.runtime.clock
        return None if monotonic is None else clock.timestamp() - clock.monotonic() + monotonic

    def config_sha256(self) -> str:
        """The hash of the configuration in force, computed once for each."""
        config = self.runtime.config
        if self._hashed is None or self._hashed[0] is not config:
            self._hashed = (config, fingerprint(config))
        return self._hashed[1]

    def readiness(self) -> Readiness:
        runtime = self.runtime
        return readiness(
            HealthView(
                status=runtime.status,
                monotonic=runtime.clock.monotonic(),
                poll_interval=runtime.config.source.poll_interval,
                scope=runtime.config.source.scope,
                vm_name=runtime.identity.vm_name,
                journal_trouble=runtime.journal.trouble,
                set_aside=runtime.journal.last_set_aside,
            )
        )

    async def readings(self) -> Readings:
        """Read at most once a second; return the previous readings while the journal is busy."""
        async with self._reading:
            now = self.runtime.clock.monotonic()
            if self._read_at is not None and now - self._read_at < _READ_AGAIN:
                return self._readings
            names = tuple(self.runtime.status.sinks)
            try:
                async with asyncio.timeout(_PATIENCE):
                    found = await self.runtime.journal.run(lambda s: _read(s, names))
            except TimeoutError:
                return self._readings
            self._read_at, self._readings = now, replace(found, seen=self._seen(found, now))
            return self._readings

    def _seen(self, found: Readings, now: float) -> dict[str, float]:
        """Since when each sink's oldest row has been its oldest, as far as we have looked."""
        before = self._readings
        return {
            name: before.seen.get(name, now)
            if name in before.backlogs and before.backlogs[name].oldest == backlog.oldest
            else now
            for name, backlog in found.backlogs.items()
        }


def _read(store: Store, sinks: tuple[str, ...]) -> Readings:
    return Readings(
        pending=sum(not known.drill for known in views.pending(store).values()),
        size=views.size(store),
        backlogs={name: backlog(store, name) for name in sinks},
    )


CONTEXT = web.AppKey("context", WebContext)
