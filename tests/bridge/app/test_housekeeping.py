import asyncio
import socket
import time

import pytest
from support.journal_tools import about, delivered, forbid_writing, recorded
from support.served_bridge import config, runtime
from support.until import until

from bridge.app import housekeeping
from bridge.app.housekeeping import keep_watchdog, maintain, repair, tidy, trim
from bridge.config import JournalSettings as Limits
from bridge.journal import views
from bridge.runtime.runtime import Runtime


@pytest.fixture
async def bridge(tmp_path):
    async with runtime(config(tmp_path)) as made:
        yield made


async def audits(bridge: Runtime) -> list[tuple[str, dict]]:
    rows = await bridge.journal.run(lambda store: views.after(store, 0, 10_000))
    found = [event.data for _, event in rows if event.type.endswith("audited.v1")]
    return [(data["action"], data["detail"]) for data in found]


async def break_disk(bridge: Runtime) -> None:
    await forbid_writing(bridge.journal)
    await bridge.journal.append([about("A")], time.time())
    assert bridge.journal.trouble


async def test_a_healthy_sink_logs_nothing(bridge):
    await tidy(bridge)
    assert await audits(bridge) == []


async def test_the_way_back_to_the_file_is_audited(bridge):
    await break_disk(bridge)
    await repair(bridge)
    assert bridge.journal.trouble is None
    assert await audits(bridge) == [("journal.restored", {"path": "journal.db"})]
    assert "A/1" in await bridge.journal.run(recorded)


async def test_what_was_set_aside_is_audited_once(bridge):
    await bridge.journal.claim("vm-1")
    await bridge.journal.claim("vm-2")
    await repair(bridge)
    await repair(bridge)
    ((action, detail),) = await audits(bridge)
    assert action == "journal.set-aside"
    assert detail["file"].startswith("journal.db.foreign-")
    assert detail["file"].endswith(": it belongs to VM vm-1")


async def test_an_audit_that_fails_is_tried_again(bridge, monkeypatch):
    bridge.journal.quarantined.append("journal.db.corrupt-1: bad")

    async def fail(*_, **__):
        raise OSError("no")

    with monkeypatch.context() as patched:
        patched.setattr(type(bridge), "audit", fail)
        with pytest.raises(OSError, match="no"):
            await repair(bridge)
    await repair(bridge)
    assert [action for action, _ in await audits(bridge)] == ["journal.set-aside"]


async def test_what_is_old_and_settled_is_deleted_silently(bridge):
    await bridge.journal.append([about("A")], time.time() - 31 * 86400)
    for sink in ("bus", "pager"):
        await bridge.journal.settle(sink, delivered("A/1"), time.time())
    await trim(bridge)
    assert await bridge.journal.run(recorded) == []
    assert bridge.status.journal_losses == 0


async def test_each_loss_is_counted_and_audited(bridge, caplog):
    limits = Limits.model_construct(keep=86400.0, max_size=300_000)
    bridge.config = bridge.config.model_copy(update={"journal": limits})
    rows = [about(f"K{n}", size=4000) for n in range(100)]
    await bridge.journal.append(rows, time.time())
    await bridge.journal.settle("pager", delivered(*(r.id for r in rows)), time.time())
    await tidy(bridge)
    ((action, detail),) = await audits(bridge)
    assert action == "journal.lost"
    assert detail["reason"] == "max_size"
    assert detail["undelivered"] == {"bus": bridge.status.journal_losses}
    assert 30 < bridge.status.journal_losses < 100
    assert "journal.lost" in [r.message for r in caplog.records]


async def test_housekeeping_repeats(bridge, monkeypatch):
    monkeypatch.setattr(housekeeping, "REPAIR_EVERY", 0.01)
    monkeypatch.setattr(housekeeping, "TRIM_EVERY", 0.03)
    keeping = asyncio.create_task(maintain(bridge))
    try:
        await break_disk(bridge)
        await until(lambda: bridge.journal.trouble is None)
        await bridge.journal.append([about("B")], time.time() - 31 * 86400)
        for sink in ("bus", "pager"):
            await bridge.journal.settle(sink, delivered("B/1"), time.time())
        async with asyncio.timeout(5):
            while "B/1" in await bridge.journal.run(recorded):
                await asyncio.sleep(0.01)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "20000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        yield sock


def heard(sock: socket.socket) -> list[bytes]:
    found = []
    try:
        while True:
            found.append(sock.recv(100))
    except BlockingIOError:
        return found


async def test_the_watchdog_is_fed_while_the_poll_loop_advances(bridge, systemd):
    feeding = asyncio.create_task(keep_watchdog(bridge))
    await asyncio.sleep(0.1)
    assert set(heard(systemd)) == {b"WATCHDOG=1"}
    bridge.status.source.last_poll = time.monotonic() - 10_000
    await asyncio.sleep(0.02)
    heard(systemd)
    await asyncio.sleep(0.05)
    assert heard(systemd) == []
    feeding.cancel()
    await asyncio.gather(feeding, return_exceptions=True)


async def test_without_a_watchdog_nothing_is_sent(bridge, monkeypatch):
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    async with asyncio.timeout(1):
        await keep_watchdog(bridge)
