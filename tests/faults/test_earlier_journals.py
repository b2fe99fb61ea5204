"""Journals that earlier versions of the bridge wrote, and left when they were killed.

`scripts/old_journal.py` made them: each has CloudEvents that the sink `behind` did not get, and from
version 2 on an approval by orders for vm-0, of an event that also needs one for vm-1.
"""

import json
import signal
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from support.bridge_process import Stage, file_sink, posts, stage
from support.judge import kind, lines

from bridge.journal.schema import VERSION

JOURNALS = sorted((Path(__file__).parents[1] / "data" / "journals").glob("*.tar.xz"))
UNDELIVERED = """SELECT o.key, o.id FROM outbox o JOIN sink s ON s.name = 'behind' AND s.low < o.seq
    LEFT JOIN delivery d ON d.sink = s.name AND d.seq = o.seq WHERE d.how IS NULL ORDER BY o.seq"""
SETTLED = "SELECT key, id FROM outbox JOIN sink ON name = 'ahead' WHERE seq <= low"


def version(journal: Path) -> int:
    return int(journal.name[1 : journal.name.index("-")])


def unpack(journal: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    with tarfile.open(journal) as packed:
        packed.extractall(folder, filter="data")


def found(journal: Path, folder: Path, sql: str) -> list[tuple[str, str]]:
    """What a query finds in a copy that the bridge never sees: keys and ids."""
    unpack(journal, folder)
    with closing(sqlite3.connect(folder / "journal.db")) as db:
        return db.execute(sql).fetchall()


def vote(at: Stage, event: str) -> None:
    """Add the second vote to the file; the bridge knows how far it has read the first."""
    first = {"eventId": event, "approver": "orders", "resource": "vm-0", "id": "orders-1"}
    second = {"eventId": event, "approver": "billing", "resource": "vm-1"}
    text = "".join(f"{json.dumps(said)}\n" for said in (first, second))
    (at.folder / "votes").write_text(text)


def test_there_is_a_journal_of_every_version():
    assert [version(journal) for journal in JOURNALS] == list(range(1, VERSION + 1))


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.name[:2])
async def test_a_journal_of_an_earlier_version_is_continued_with_nothing_lost(
    tmp_path: Path, journal: Path
):
    waiting = found(journal, tmp_path / "waiting", UNDELIVERED)
    settled = found(journal, tmp_path / "settled", SETTLED)
    assert len(waiting) >= 5
    sinks = {name: file_sink(tmp_path, name) for name in ("ahead", "behind")}
    (tmp_path / "votes").touch()
    source = {"type": "tail", "trust": "transport", "path": str(tmp_path / "votes")}
    async with stage(tmp_path, quick=True, sinks=sinks, approvals={"from": {"bus": source}}) as at:
        unpack(journal, at.state_dir)
        both = at.world.create(name="both", type="Reboot", notice="2h", resources=["vm-0", "vm-1"])
        step = 2 if version(journal) < VERSION else 1
        assert await at.once(tail=1, around_migration=step) == -signal.SIGKILL

        await at.start(faults={"tail": 1})
        behind, ahead = tmp_path / "behind.jsonl", tmp_path / "ahead.jsonl"
        await at.until(behind.exists, "deliveries")
        await at.polled()
        if version(journal) > 1:
            vote(at, both.event.event_id)
            await at.until(lambda: posts(at), "the request to Azure")
        assert await at.stop() == 0

    delivered = [(one["partitionkey"], one["id"]) for one in lines(behind)]
    for key in {key for key, _ in waiting}:
        of_key = [row for row in waiting if row[0] == key]
        assert [row for row in delivered if row[0] == key][: len(of_key)] == of_key
    assert not {one["id"] for one in lines(ahead)} & {id_ for _, id_ in settled}
    assert {kind(one) for one in lines(ahead)} >= {"updated"}, "the event has moved by an hour"
    assert not at.said("journal.set_aside")
