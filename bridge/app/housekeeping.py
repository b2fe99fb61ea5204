"""Periodic work: repair the journal, trim it, and feed systemd's watchdog."""

import asyncio
import logging
import time

from bridge import platform
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import stuck

log = logging.getLogger(__name__)

TRIM_EVERY = 60.0
REPAIR_EVERY = 5.0


async def maintain(runtime: Runtime) -> None:
    """Trim the journal once a minute, and check every few seconds whether it needs repair."""
    while True:
        await tidy(runtime)
        for _ in range(round(TRIM_EVERY / REPAIR_EVERY)):
            await asyncio.sleep(REPAIR_EVERY)
            await repair(runtime)


async def tidy(runtime: Runtime) -> None:
    """Do everything once."""
    await repair(runtime)
    await trim(runtime)


async def repair(runtime: Runtime) -> None:
    """Return from memory to the file, and report journals that were set aside."""
    journal = runtime.journal
    if await journal.repair():
        await _audit(runtime, "journal.restored", {"path": journal.path.name})
    while journal.quarantined:
        await _audit(runtime, "journal.set-aside", {"file": journal.quarantined[0]})
        journal.quarantined.pop(0)


async def trim(runtime: Runtime) -> None:
    """Delete what is old and settled, and report what was deleted before it was settled."""
    limits = runtime.config.journal
    sinks = runtime.config.sinks.items()
    trimmed = await runtime.journal.trim(
        now=time.time(),
        keep=limits.keep,
        max_size=limits.max_size,
        best_effort=[name for name, sink in sinks if not sink.required],
    )
    if trimmed.lost:
        runtime.status.journal_losses += sum(trimmed.lost.values())
        log.error("journal.lost", extra={"reason": "max_size", "undelivered": trimmed.lost})
        await _audit(runtime, "journal.lost", {"reason": "max_size", "undelivered": trimmed.lost})


async def _audit(runtime: Runtime, action: str, detail: dict[str, object]) -> None:
    await runtime.audit(action, actor="bridge", via="journal", detail=detail)


async def keep_watchdog(runtime: Runtime) -> None:
    """Feed systemd's watchdog while the poll loop advances."""
    interval = platform.watchdog_interval()
    while interval:
        now = runtime.clock.monotonic()
        if not stuck(runtime.status, runtime.config.source.poll_interval, now):
            platform.notify("WATCHDOG=1")
        await asyncio.sleep(interval)
