"""The file sink: whole lines, rotation, full disks, and what its check finds."""

import asyncio
import errno
import json
import os
import stat
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.cloudevents import LARGEST, batch, make
from support.results import proved
from support.sink_contract import Peer, SinkContract, cancel, eventually

from bridge.plugins import Place, Unavailable
from sinks.file import FileSettings, sink

DAY = 86400


class Folder(Peer):
    """A file in a directory of its own; it goes down when something else stands in its place."""

    def __init__(self, path, monkeypatch):
        self.path = path
        self.aside = path.with_name("aside")
        self.settings = settings(path)
        self.open = threading.Event()
        self.open.set()
        fsync = os.fsync

        def slow(descriptor):
            assert self.open.wait(20)
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", slow)  # a file server that hangs cannot be had here

    async def down(self):
        if self.path.exists():
            self.path.rename(self.aside)
        self.path.mkdir()

    async def up(self):
        self.path.rmdir()
        if self.aside.exists():
            self.aside.rename(self.path)

    async def stall(self):
        self.open.clear()

    async def release(self):
        self.open.set()

    async def received(self):
        return read(self.path) if self.path.exists() else []


class TestFile(SinkContract):
    plugin = sink
    cannot_reject = "a file takes anything"
    keeps_a_thread = "a call into a file server that hangs cannot be taken back"

    @pytest.fixture
    async def peer(self, tmp_path, monkeypatch):
        folder = Folder(tmp_path / "events.jsonl", monkeypatch)
        yield folder
        await folder.release()
        await eventually(_nobody_writes)


async def _nobody_writes():
    return not any(thread.name == "sink-lane" for thread in threading.enumerate())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def settings(path, **keys):
    return FileSettings.model_validate({"type": "file", "path": str(path), **keys})


def read(path):
    text = path.read_bytes()
    assert text.endswith(b"\n") or not text
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


def numbers(path):
    """Which CloudEvents are in the file, by their number up to 99."""
    known = {make(n).id: n for n in range(100)}
    return [known[envelope["id"]] for envelope in read(path)]


def rotated(path):
    return sorted(path.parent.glob(f"{path.name}.*"))


async def send(cloudevents, chosen, place=Place()):  # noqa: B008  a value
    async with sink.open(chosen, place) as deliver:
        return await deliver(cloudevents)


async def why(cloudevents, chosen):
    with pytest.raises(Unavailable) as caught:
        await send(cloudevents, chosen)
    return str(caught.value)


def age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


# What may be configured


def test_defaults_are_those_of_the_docs(path):
    chosen = settings(path)
    assert (chosen.max_size, chosen.max_age) == (100 * 1024**2, DAY)
    assert (chosen.keep, chosen.mode) == (7, "0640")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"path": ""}, "at least 1 character"),
        ({"path": "/var/log/{vm}.jsonl"}, "{vm} is unknown; choose from observer, vm_name"),
        ({"path": "/var/log/{subject}.jsonl"}, "{subject} is unknown"),
        ({"mode": 0o640}, 'must be in quotes, as in "0640"'),
        ({"mode": "0440"}, "let the owner write"),
        ({"mode": "rw-r-----"}, "must be in quotes"),
        ({"max_size": "big"}, "'big' is not a size"),
        ({"max_age": "daily"}, "'daily' is not a duration"),
        ({"keep": -1}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_work_is_refused_with_a_reason(path, keys, says):
    with pytest.raises(ValidationError) as caught:
        FileSettings.model_validate({"type": "file", "path": str(path), **keys})
    assert says in str(caught.value)


def test_it_describes_itself(path):
    assert settings("/a").describe() == (
        "appends CloudEvents as JSON lines to /a, rotated by size and age, 7 kept"
    )
    never = settings("/a", max_size="0B", max_age=0)
    assert never.describe() == "appends CloudEvents as JSON lines to /a, never rotated"


async def test_the_path_tells_vms_apart(tmp_path):
    chosen = settings(tmp_path / "{vm_name}" / "{location}.jsonl")
    place = Place({"vm_name": "../web 1", "location": "westeurope"})
    assert await send(batch(1), chosen, place) == [None]
    assert numbers(tmp_path / ".._web_1" / "westeurope.jsonl") == [1]
    with pytest.raises(Unavailable, match="not known yet"):
        await send(batch(1), chosen, Place())


# Creating


async def test_directories_and_the_file_are_made_on_entering(tmp_path):
    path = tmp_path / "a" / "b" / "events.jsonl"
    async with sink.open(settings(path), Place()):
        assert path.read_bytes() == b""


@pytest.mark.parametrize("mode", ["0600", "0666", "0640"])
async def test_a_new_file_has_the_mode_that_was_asked_for_whatever_the_umask(path, mode):
    before = os.umask(0o077)
    try:
        await send(batch(1), settings(path, mode=mode))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == int(mode, 8)


async def test_the_mode_of_a_file_that_is_there_already_is_left_alone(path):
    path.touch(0o600)
    await send(batch(1), settings(path, mode="0644"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_file_and_directory_are_synced(path, monkeypatch):
    synced = set()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.add(Path(f"/proc/self/fd/{fd}").readlink()))
    await send(batch(1), settings(path))
    assert synced == {path, path.parent}


# After a crash


@pytest.mark.parametrize(
    "tail",
    [
        make(2).body[:1],
        make(2).body[:-1],
        make(2).body,
        make(2, size=LARGEST).body,
        b'{"' + b"x" * 1_000_000,
        b"\0" * 10_000,
    ],
    ids=["first byte", "all but a byte", "no newline", "64 KiB", "very long", "zeros"],
)
@pytest.mark.parametrize("before", [[], [make(1)]], ids=["nothing before", "a line before"])
async def test_an_unfinished_last_line_is_cut_off(path, tail, before):
    whole = b"".join(cloudevent.body + b"\n" for cloudevent in before)
    path.write_bytes(whole + tail)
    async with sink.open(settings(path), Place()):
        assert path.read_bytes() == whole
    await send([make(3)], settings(path))
    assert numbers(path) == [1] * len(before) + [3]


@pytest.mark.parametrize("edge", [4095, 4096, 4097, 8192])
async def test_it_is_cut_at_the_newline_wherever_that_is(path, edge):
    path.write_bytes(b"{}\n" + b"{" + b"x" * (edge - 1))
    async with sink.open(settings(path), Place()):
        assert path.read_bytes() == b"{}\n"


@pytest.mark.parametrize("before", [b"", b"root:x:0:0\n"], ids=["alone", "after a line"])
@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 8192])
async def test_a_last_line_that_is_not_ours_is_never_cut(path, before, length):
    foreign = before + b"x" * length
    path.write_bytes(foreign)
    assert "its last line is unfinished and not a CloudEvent" in await why(batch(1), settings(path))
    assert path.read_bytes() == foreign


@pytest.mark.parametrize("tail", [b"C", b"CEF:", b"CEF:0|scheduled-events-bridge|Azure Sch", b"{"])
async def test_an_unfinished_line_of_another_format_is_cut_off_too(path, tail):
    path.write_bytes(b"CEF:0|whole\n" + tail)
    async with sink.open(settings(path, format="cef"), Place()):
        assert path.read_bytes() == b"CEF:0|whole\n"


async def test_what_was_begun_in_leef_is_written_whole_after_a_crash(path):
    path.write_bytes(b"LEEF:2.0|sched")
    await send([make(1)], settings(path, format="leef"))
    (line,) = path.read_bytes().splitlines()
    assert line.startswith(b"LEEF:2.0|scheduled-events-bridge|")


async def test_a_line_that_is_not_of_its_format_is_never_cut(path):
    path.write_bytes(b"LEEF:2.0|sched")
    assert "is it another file?" in await why(batch(1), settings(path, format="cef"))
    assert path.read_bytes() == b"LEEF:2.0|sched"


async def test_half_of_a_line_by_a_template_is_ended_where_it_broke_off(path):
    """Nobody knows how such lines begin, so nothing is cut, and what follows is whole."""
    template = {"type": "template", "content_type": "text/plain", "template": "news {{ id }}"}
    path.write_bytes(b"news one\nnews tw")
    await send([make(1)], settings(path, format=template))
    assert path.read_bytes() == f"news one\nnews tw\nnews {make(1).id}\n".encode()


# What can go wrong


async def test_a_directory_in_the_way_is_named(path):
    path.mkdir()
    assert await why(batch(1), settings(path)) == f"cannot write {path}: Is a directory"


async def test_a_file_where_a_directory_should_be_is_named(tmp_path):
    (tmp_path / "a").touch()
    reason = await why(batch(1), settings(tmp_path / "a" / "b.jsonl"))
    assert reason == f"cannot write {tmp_path / 'a' / 'b.jsonl'}: Not a directory"


async def test_a_named_pipe_is_refused_immediately(path):
    os.mkfifo(path)
    assert await why(batch(1), settings(path)) == f"cannot write {path}: it is not a regular file"


async def test_a_file_that_may_not_be_written_is_named(path):
    path.touch(0o400)
    before = os.geteuid()
    os.seteuid(before or 65534)  # root may write anywhere
    try:
        reason = await why(batch(1), settings(path))
    finally:
        os.seteuid(before)
    assert reason == f"cannot write {path}: Permission denied"


@pytest.fixture
def room(path):
    """A real limit of the system, at which a write stops halfway as on a full disk."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def leave(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    yield leave
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_that_stops_halfway_leaves_nothing_of_the_batch(path, room):
    await send([make(1)], settings(path))
    room(path.stat().st_size + len(make(2).body) * 2)
    assert await why(batch(5, first=2), settings(path)) == f"cannot write {path}: File too large"
    assert numbers(path) == [1]
    room(1_000_000)
    await send(batch(5, first=2), settings(path))
    assert numbers(path) == [1, 2, 3, 4, 5, 6]


async def test_a_half_line_that_could_not_be_cut_back_is_cut_by_the_next(path, room, monkeypatch):
    await send([make(1)], settings(path))
    room(path.stat().st_size + len(make(2).body) // 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fails(errno.EIO))
        assert "File too large" in await why([make(2)], settings(path))
    assert not path.read_bytes().endswith(b"\n")
    room(1_000_000)
    await send([make(2)], settings(path))
    assert numbers(path) == [1, 2]


def fails(number):
    def call(*_):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("name", ["write", "fsync"])
async def test_a_disk_that_fails_is_unavailable_and_takes_nothing(path, monkeypatch, number, name):
    await send([make(1)], settings(path))
    async with sink.open(settings(path), Place()) as deliver:
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails(number))
            with pytest.raises(Unavailable) as caught:
                await deliver([make(2)])
        assert str(caught.value) == f"cannot write {path}: {os.strerror(number)}"
        assert numbers(path) == [1]
        assert await deliver([make(2)]) == [None]
    assert numbers(path) == [1, 2]


async def test_short_writes_are_completed(path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, piece: write(fd, bytes(piece[:700])))
    await send(batch(3), settings(path))
    assert numbers(path) == [1, 2, 3]


async def test_one_that_was_canceled_finishes_before_the_next_begins(path, monkeypatch):
    began, go, fsync = threading.Event(), threading.Event(), os.fsync

    def slow(descriptor):
        began.set()
        assert go.wait(20)
        fsync(descriptor)

    async with sink.open(settings(path), Place()) as deliver:
        monkeypatch.setattr(os, "fsync", slow)
        stuck = asyncio.ensure_future(deliver([make(1)]))
        await asyncio.to_thread(began.wait, 20)
        await cancel(stuck)
    later = asyncio.ensure_future(send([make(2)], settings(path)))
    await asyncio.wait({later}, timeout=0.1)
    assert not later.done()
    assert numbers(path) == [1]
    go.set()
    assert await later == [None]
    assert numbers(path) == [1, 2]


# Rotation


async def test_it_rotates_before_it_grows_too_large(path):
    size = len(make(1).body) + 1
    chosen = settings(path, max_size=f"{2 * size + 1}B")
    async with sink.open(chosen, Place()) as deliver:
        for n in range(1, 6):
            await deliver([make(n)])
    assert [numbers(old) for old in rotated(path)] == [[1, 2], [3, 4]]
    assert numbers(path) == [5]


async def test_a_batch_larger_than_the_limit_gets_a_file_of_its_own(path):
    chosen = settings(path, max_size="1KiB")
    async with sink.open(chosen, Place()) as deliver:
        await deliver([make(1)])
        await deliver(batch(4, first=2))
        await deliver([make(6)])
    assert [numbers(old) for old in rotated(path)] == [[1], [2, 3, 4, 5]]
    assert numbers(path) == [6]


async def test_only_so_many_rotated_files_are_kept_and_others_are_left_alone(path):
    strangers = [path.with_name(f"{path.name}.{end}") for end in ("1", "gz", "20261115")]
    for stranger in strangers:
        stranger.write_text("not ours")
    async with sink.open(settings(path, max_size="1B", keep=2), Place()) as deliver:
        for n in range(1, 7):
            await deliver([make(n)])
    ours = [old for old in rotated(path) if old not in strangers]
    assert [numbers(old) for old in ours] == [[4], [5]]
    assert numbers(path) == [6]
    assert all(stranger.read_text() == "not ours" for stranger in strangers)


async def test_with_nothing_to_keep_only_the_present_file_stays(path):
    async with sink.open(settings(path, max_size="1B", keep=0), Place()) as deliver:
        await deliver([make(1)])
        await deliver([make(2)])
    assert rotated(path) == []
    assert numbers(path) == [2]


async def test_it_rotates_when_its_last_write_was_in_an_earlier_period_also_after_a_restart(path):
    await send([make(1)], settings(path))
    age(path, DAY)
    await send([make(2)], settings(path))
    assert [numbers(old) for old in rotated(path)] == [[1]]
    assert numbers(path) == [2]


async def test_it_does_not_rotate_within_a_period(path, monkeypatch):
    await send([make(1)], settings(path))
    noon = (time.time() // DAY) * DAY + DAY / 2
    os.utime(path, (noon, noon))
    monkeypatch.setattr(time, "time", lambda: noon + DAY / 2 - 1)
    await send([make(2)], settings(path))
    assert rotated(path) == []
    os.utime(path, (noon, noon))
    monkeypatch.setattr(time, "time", lambda: noon + DAY / 2)
    await send([make(3)], settings(path))
    assert [numbers(old) for old in rotated(path)] == [[1, 2]]


async def test_a_clock_that_was_set_back_rotates_nothing(path):
    await send([make(1)], settings(path))
    age(path, -10 * DAY)
    await send([make(2)], settings(path))
    assert numbers(path) == [1, 2]
    assert path.stat().st_mtime < time.time() + DAY


async def test_age_and_size_can_be_off(path):
    chosen = settings(path, max_age=0, max_size="0B")
    await send([make(1)], chosen)
    age(path, 1000 * DAY)
    await send(batch(9, first=2, size=LARGEST), chosen)
    assert rotated(path) == []
    assert len(read(path)) == 10


async def test_an_empty_file_is_not_rotated(path):
    path.touch()
    age(path, DAY)
    await send([make(1)], settings(path))
    assert rotated(path) == []


async def test_a_half_line_is_cut_before_its_file_is_rotated_and_does_not_make_it_younger(path):
    path.write_bytes(make(1).body + b"\n" + make(2).body[:9])
    age(path, DAY)
    await send([make(3)], settings(path))
    assert [numbers(old) for old in rotated(path)] == [[1]]
    assert numbers(path) == [3]


async def test_a_file_that_cannot_be_renamed_is_written_on(path, monkeypatch, caplog):
    await send([make(1)], settings(path))
    monkeypatch.setattr(os, "rename", fails(errno.EACCES))
    await send([make(2)], settings(path, max_size="1B"))
    assert numbers(path) == [1, 2]
    assert "file.rotation_failed" in caplog.messages


async def test_two_rotations_at_the_same_moment_keep_both_files(path, monkeypatch):
    class Still:
        @staticmethod
        def now(zone):
            return moment

    moment = datetime(2026, 11, 15, 18, 29, 47, 999_999, UTC)
    monkeypatch.setattr("sinks._lines.datetime", Still)
    async with sink.open(settings(path, max_size="1B"), Place()) as deliver:
        for n in (1, 2, 3):
            await deliver([make(n)])
    assert [old.name for old in rotated(path)] == [
        "events.jsonl.20261115T182947.999999Z",
        "events.jsonl.20261115T182948.000000Z",
    ]


# Others who rotate


async def test_a_renamed_file_is_created_again(path):
    async with sink.open(settings(path), Place()) as deliver:
        await deliver([make(1)])
        path.rename(path.with_suffix(".1"))
        await deliver([make(2)])
    assert numbers(path.with_suffix(".1")) == [1]
    assert numbers(path) == [2]


async def test_a_deleted_file_and_directory_are_created_again(tmp_path):
    path = tmp_path / "logs" / "events.jsonl"
    async with sink.open(settings(path), Place()) as deliver:
        await deliver([make(1)])
        path.unlink()
        path.parent.rmdir()
        await deliver([make(2)])
    assert numbers(path) == [2]


async def test_a_file_that_another_program_creates_again_is_the_one_written(path):
    async with sink.open(settings(path), Place()) as deliver:
        await deliver([make(1)])
        path.rename(path.with_suffix(".1"))
        path.touch(0o600)
        await deliver([make(2)])
    assert numbers(path) == [2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_file_copied_and_truncated_from_outside_has_no_hole(path):
    async with sink.open(settings(path), Place()) as deliver:
        await deliver([make(1)])
        os.truncate(path, 0)
        await deliver([make(2)])
    assert numbers(path) == [2]


async def test_behind_a_symbolic_link_the_file_itself_is_rotated(tmp_path):
    real, link = tmp_path / "data" / "events.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(real)
    async with sink.open(settings(link, max_size="1B"), Place()) as deliver:
        await deliver([make(1)])
        await deliver([make(2)])
    assert link.is_symlink()
    assert numbers(link) == [2]
    assert [numbers(old) for old in rotated(real)] == [[1]]


# The check


async def test_the_check_of_a_new_path_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a" / "b" / "events.jsonl"
    assert await proved(sink, settings(path), Place()) == f"{path} can be created"
    assert list(tmp_path.iterdir()) == []


async def test_the_check_of_a_file_in_use_changes_nothing(path):
    path.write_bytes(make(1).body + b"\n" + make(2).body[:9])
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert await proved(sink, settings(path), Place()) == f"{path} can be written"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]


async def test_the_check_says_when_a_file_can_be_written_but_not_rotated(path, monkeypatch):
    path.touch()
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: fails(errno.EACCES)())
    said = await proved(sink, settings(path), Place())
    assert said == f"{path} can be written, but not rotated: Permission denied"


async def test_the_check_finds_what_would_go_wrong(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(Unavailable, match="cannot write"):
        await proved(sink, settings(tmp_path / "a" / "b.jsonl"), Place())


async def test_two_sinks_on_one_path_do_not_mix_their_lines(path):
    both = [send(batch(20, first=first), settings(path)) for first in (1, 21)]
    await asyncio.gather(*both)
    assert sorted(numbers(path)) == list(range(1, 41))


async def test_a_file_truncated_while_it_is_being_written_has_no_hole(path, monkeypatch):
    await send([make(1)], settings(path))
    write = os.write

    def late(descriptor, piece):
        os.truncate(path, 0)
        return write(descriptor, piece)

    monkeypatch.setattr(os, "write", late)
    await send([make(2)], settings(path))
    assert numbers(path) == [2]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO], ids=["EINVAL", "EIO"])
async def test_a_directory_that_cannot_be_synced_counts_unless_there_is_no_such_thing(
    path, monkeypatch, number
):
    fsync = os.fsync

    def for_files(descriptor):
        return fails(number)() if stat.S_ISDIR(os.fstat(descriptor).st_mode) else fsync(descriptor)

    monkeypatch.setattr(os, "fsync", for_files)
    if number == errno.EINVAL:
        assert await send([make(1)], settings(path)) == [None]
    else:
        assert await why([make(1)], settings(path)) == f"cannot write {path}: Input/output error"


async def test_where_directories_cannot_be_opened_files_are_written_all_the_same(path, monkeypatch):
    opened = os.open

    def as_on_windows(name, *flags):
        return fails(errno.EACCES)() if Path(name).is_dir() else opened(name, *flags)

    monkeypatch.setattr(os, "open", as_on_windows)
    assert await send([make(1)], settings(path)) == [None]


async def test_the_check_of_a_directory_that_takes_no_files_says_so(path, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: fails(errno.EROFS)())
    with pytest.raises(Unavailable, match="Read-only file system"):
        await proved(sink, settings(path), Place())
