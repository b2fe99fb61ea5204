"""Files that anyone may have damaged: the configuration, DHCP leases and the journal."""

import asyncio
import json
import re
import shutil
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fuzzing import damaged
from support.journal_tools import NOW, about, delivered, opened, tracking

from bridge.config import Config, ConfigError, load
from bridge.delivery.rules import planned_start, wanted
from bridge.journal import Newer, Row
from bridge.journal.store import Store
from bridge.metadata.leases import dhclient_address, networkd_address, routes_to_host
from bridge.plugins import Only

ROOT = Path(__file__).parents[2]
shared_folder = [HealthCheck.function_scoped_fixture]

# --- the configuration ---------------------------------------------------------------------------

GUIDES = [ROOT / "docs" / "configuration.md", *sorted((ROOT / "docs" / "sinks").glob("*.md"))]
YAML = [
    found.encode()
    for path in GUIDES
    for found in re.findall(r"```yaml\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
]
KEYS = sorted({key for text in YAML for key in re.findall(r"[\w-]+(?=:)", text.decode())})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12) | st.sampled_from([*KEYS, "1s", "5 GiB", "*", "whsec_AAAA", "${HOME}", "http://[", "{vm_name}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
SECTIONS = st.sampled_from(sorted(Config.model_fields))
KINDS = st.sampled_from(
    ["stdout", "file", "kafka", "mqtt", "webhook", "syslog", "splunk", "command"]
)
SINKS = st.builds(
    lambda kind, more: {**more, "type": kind},
    KINDS,
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
)
BUILT = st.builds(
    lambda sections, sinks: json.dumps({**sections, "sinks": sinks}).encode(),
    st.dictionaries(SECTIONS, VALUES, max_size=3),
    st.dictionaries(st.sampled_from("ab"), SINKS, max_size=2) | VALUES,
)


def problems_of(path):
    """What is wrong with a file; None if nothing is."""
    try:
        load(path, {"HOME": "/home/x"})
    except ConfigError as error:
        return error.problems
    return None


@pytest.mark.fuzz
@settings(max_examples=100, suppress_health_check=shared_folder)
@given(damaged(st.sampled_from(YAML)) | BUILT)
def test_any_file_is_a_configuration_or_is_refused_in_sentences(tmp_path, body):
    path = tmp_path / "config.yaml"
    path.write_bytes(body)
    problems = problems_of(path)
    assert problems is None or problems, "an error says why"
    for line in problems or ():
        assert line.startswith(str(path)), line
        assert len(line.splitlines()) == 1, line
        assert "Error(" not in line, line
        line.encode()


# --- leases --------------------------------------------------------------------------------------

LEASES = [
    path.read_bytes()
    for path in (ROOT / "tests" / "bridge" / "metadata" / "data").rglob("*")
    if path.is_file()
]


@pytest.mark.fuzz
@given(damaged(st.sampled_from(LEASES), most=6))
def test_any_lease_has_an_address_or_none(body):
    text = body.decode(errors="replace")
    found = (dhclient_address(text, datetime(2020, 1, 1, tzinfo=UTC)), networkd_address(text))
    assert all(address is None or isinstance(address, IPv4Address) for address in found)
    assert routes_to_host(text) in (True, False)


# --- the journal ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two folders: of a bridge that was killed, with a write-ahead log, and of one that stopped."""
    folder = tmp_path_factory.mktemp("whole")

    async def make():
        async with opened(folder / "stopped" / "journal.db", "a", "b") as journal:
            await journal.commit(tracking("K", "L"), [about("K"), about("L")], NOW)
            await journal.settle("a", delivered("K/1"), NOW)
            shutil.copytree(folder / "stopped", folder / "killed")

    (folder / "stopped").mkdir()
    asyncio.run(make())
    return folder


@st.composite
def wounds(draw: st.DrawFn):
    """Which of the two, which of its files, and where it is hit with what."""
    hits = st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=64) | st.just(bytes(4096)))
    which = draw(st.sampled_from(["journal.db", "journal.db", "journal.db-wal"]))
    cut = draw(st.none() | st.none() | st.floats(0, 1))
    return (
        draw(st.sampled_from(["killed", "stopped"])),
        which,
        draw(st.lists(hits, max_size=4)),
        cut,
    )


def wounded(body: bytes, hits, cut) -> bytes:
    new = bytearray(body)
    for part, piece in hits:
        at = int(part * len(new))
        new[at : at + len(piece)] = piece
    return bytes(new if cut is None else new[: int(cut * len(new))])


ANY_TYPE = Only(event_types=["Re*"])


def waiting(store: Store) -> list[Row]:
    return [row for sink in ("a", "b") for row in store.unsettled(sink, 9, frozenset())]


async def use(path: Path) -> None:
    """What a bridge does with its journal: read everything, decide what to send, and write."""
    async with opened(path, "a", "b") as journal:
        assert journal.origin in ("continued", "new", "quarantined")
        state = await journal.load()
        for row in await journal.run(waiting):
            assert wanted(row.event, ANY_TYPE) in (True, False)
            assert isinstance(planned_start(row.event), float | None)
        await journal.commit(state, [about("M")], NOW)
        assert await journal.run(Store.load) is not None


@pytest.mark.fuzz
@settings(max_examples=60, suppress_health_check=shared_folder)
@given(wounds())
def test_any_damage_to_the_journal_is_survived(tmp_path, whole, wound):
    which, name, hits, cut = wound
    folder = tmp_path / "state"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole / which, folder)
    path = folder / "journal.db"
    if (folder / name).exists():
        (folder / name).write_bytes(wounded((folder / name).read_bytes(), hits, cut))
    before = path.read_bytes()
    try:
        asyncio.run(use(path))
    except Newer:
        assert path.read_bytes() == before, "a newer journal is left alone"
