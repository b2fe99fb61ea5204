import asyncio
import socket
from pathlib import Path

import pytest
from support.canned_server import CannedServer, http

from bridge.metadata import discovery
from bridge.metadata.answers import Answer, SourceProblem
from bridge.metadata.budget import Budget
from bridge.metadata.discovery import WELL_KNOWN, Attempt, Candidate, asker, candidates, discover

DATA = Path(__file__).parent / "data"
QUIET = {"DocumentIncarnation": 6, "Events": []}
HOST = ["http://168.63.129.16", "http://168.63.129.16:8080"]
NOWHERE = Path(__file__).parent / "data" / "unrouted"


@pytest.fixture
def nobody():
    """A URL without a listener for the duration of the test."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def urls(found: list[Candidate]) -> list[str]:
    return [candidate.url for candidate in found]


def origins(found: list[Candidate]) -> list[str]:
    return [candidate.origin for candidate in found]


async def discovered(*found: Candidate) -> tuple[Candidate | None, list[Attempt]]:
    return await discover("2020-07-01", found=found, budget=Budget(limit=1000))


def test_without_leases_the_well_known_address_comes_first_and_the_constant_last():
    found = candidates(root=NOWHERE)
    assert urls(found) == [WELL_KNOWN, *HOST]
    assert origins(found) == ["well-known", "constant", "constant"]


def test_a_remembered_winner_comes_before_all_others():
    found = candidates(remembered="http://168.63.129.16:8080/", root=NOWHERE)
    assert urls(found) == ["http://168.63.129.16:8080", WELL_KNOWN, "http://168.63.129.16"]
    assert found[0].origin == "remembered"


def test_the_well_known_address_is_not_asked_twice_when_it_is_remembered():
    assert urls(candidates(remembered=WELL_KNOWN, root=NOWHERE)) == [WELL_KNOWN, *HOST]


@pytest.mark.parametrize(
    "remembered",
    ["http://10.0.0.99", "http://imds.example", "http://[", "nonsense", "http://[::1]"],
)
def test_what_is_remembered_from_elsewhere_is_refused(remembered):
    first, *_ = candidates(remembered=remembered, root=NOWHERE)
    assert first.refused


@pytest.mark.parametrize("system", ["networkd", "debian", "redhat", "networkmanager", "openbsd"])
def test_a_lease_file_is_named_as_the_origin(system):
    found = candidates(root=DATA / system)
    leased = [one for one in found if one.origin.startswith("lease ")]
    assert set(HOST) <= set(urls(leased))
    assert str(DATA / system) in leased[0].origin
    assert found[0].url == WELL_KNOWN


def test_an_address_of_the_link_is_asked_on_port_80_alone():
    found = urls(candidates(root=DATA / "redhat"))
    assert found == [WELL_KNOWN, *HOST]


def test_an_expired_lease_is_no_origin():
    assert origins(candidates(root=DATA / "expired")) == ["well-known", "constant", "constant"]


def test_a_route_to_the_host_is_an_origin():
    found = candidates(root=DATA / "routed")
    assert urls(found) == [WELL_KNOWN, *HOST]
    assert origins(found) == ["well-known", "route", "route"]


def test_an_address_of_dhcp_that_is_not_azures_is_refused_on_every_port():
    refused = [one for one in candidates(root=DATA / "spoofed") if one.refused]
    assert urls(refused) == ["http://10.0.0.99"]


def test_unreadable_lease_files_are_skipped(tmp_path):
    leases = tmp_path / "run/systemd/netif/leases"
    (leases / "2").mkdir(parents=True)
    (leases / "3").write_bytes(b"\xff\xfe\x00OPTION_245=a83f8110\n")
    (leases / "4").symlink_to(tmp_path / "gone")
    assert origins(candidates(root=tmp_path)) == ["well-known", "constant", "constant"]


def test_the_environment_is_not_read(monkeypatch):
    monkeypatch.setenv("SCHEDULEDEVENTSIP", "169.254.1.1")
    assert urls(candidates(root=NOWHERE)) == [WELL_KNOWN, *HOST]


async def test_a_configured_url_is_taken_without_a_request():
    async def never(_: Candidate) -> Answer | SourceProblem:
        raise AssertionError

    chosen, attempts = await discover("2020-07-01", configured="http://127.0.0.1:1/", probe=never)
    assert chosen == Candidate("http://127.0.0.1:1", "configured")
    assert [attempt.chosen for attempt in attempts] == [True]


async def test_the_first_that_answers_with_a_document_wins(nobody):
    async with CannedServer(http(body=QUIET)) as server, CannedServer(http(body=QUIET)) as other:
        chosen, attempts = await discovered(
            Candidate(nobody, "well-known"),
            Candidate(server.url, "route"),
            Candidate(other.url, "constant"),
        )
    assert chosen == Candidate(server.url, "route")
    assert [attempt.chosen for attempt in attempts] == [False, True]
    assert "No connection" in attempts[0].verdict
    assert attempts[1].verdict == "answered with a document"
    assert other.connections == 0


async def test_a_probe_is_one_request_with_the_header():
    async with CannedServer(http(body=QUIET)) as server:
        await discovered(Candidate(server.url, "well-known"))
    (request,) = server.requests
    assert request.headers["metadata"] == "true"
    assert request.target == "/metadata/scheduledevents?api-version=2020-07-01"


async def test_an_empty_body_is_an_answer_too():
    async with CannedServer(http()) as server:
        chosen, attempts = await discovered(Candidate(server.url, "constant"))
    assert chosen is not None
    assert attempts[0].verdict == "answered with an empty body"


ODD: list[bytes | None] = [
    http(400),
    http(403),
    http(404),
    http(410),
    http(429),
    http(500),
    http(302),
    http(body="<p>"),
]
ODD += [b"HTTP/1.1 304 Not Modified\r\n\r\n", b"SSH-2.0-x\r\n\r\n", None]
NAMES = ["400", "403", "404", "410", "429", "500", "302", "html", "304", "ssh", "reset"]


@pytest.mark.parametrize("answer", ODD, ids=NAMES)
async def test_whatever_the_well_known_address_answers_the_bridge_stays_with_it(answer):
    async with (
        CannedServer(answer, hang_up=True) as server,
        CannedServer(http(body=QUIET)) as other,
    ):
        chosen, attempts = await discovered(
            Candidate(server.url, "well-known"), Candidate(other.url, "constant")
        )
    assert chosen == Candidate(server.url, "well-known")
    assert len(attempts) == 1
    assert other.connections == 0


@pytest.mark.parametrize("answer", ODD, ids=NAMES)
async def test_any_other_address_must_answer_like_the_endpoint(answer):
    async with (
        CannedServer(answer, hang_up=True) as server,
        CannedServer(http(body=QUIET)) as other,
    ):
        chosen, attempts = await discovered(
            Candidate(server.url, "route"), Candidate(other.url, "constant")
        )
    assert chosen == Candidate(other.url, "constant")
    assert [attempt.chosen for attempt in attempts] == [False, True]
    assert attempts[0].verdict


async def test_the_well_known_address_is_known_by_its_url_too():
    async def refuses(_: Candidate) -> SourceProblem:
        return SourceProblem("forbidden", "No.", status=403)

    remembered = Candidate(WELL_KNOWN, "remembered")
    chosen, attempts = await discover("2020-07-01", found=[remembered], probe=refuses)
    assert chosen == remembered
    assert attempts[0].verdict == "found, and kept despite a problem: No."


async def test_when_nothing_answers_there_is_no_winner_and_all_attempts_are_reported(nobody):
    found = [Candidate(nobody, origin) for origin in ("well-known", "route", "constant")]
    chosen, attempts = await discovered(*found)
    assert chosen is None
    assert [attempt.candidate.origin for attempt in attempts] == ["well-known", "route", "constant"]


async def test_a_refused_candidate_is_reported_but_never_contacted():
    async with CannedServer(http(body=QUIET)) as server:
        chosen, attempts = await discovered(Candidate(server.url, "lease x", refused=True))
    assert chosen is None
    assert attempts[0].verdict.startswith("refused")
    assert server.connections == 0


async def test_probes_count_in_the_budget_of_the_bridge():
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        budget._recent.clear()

    budget = Budget(limit=2, sleep=sleep)
    async with CannedServer(http(404)) as server:
        found = [Candidate(server.url, f"lease {number}") for number in range(3)]
        await discover("2020-07-01", found=found, budget=budget)
    assert len(server.requests) == 3
    assert len(waits) == 1


async def test_a_canceled_search_ends():
    async with CannedServer(handler=lambda _: asyncio.sleep(20)) as server:
        search = asyncio.create_task(discovered(Candidate(server.url, "well-known")))
        for _ in range(1000):
            if server.requests:
                break
            await asyncio.sleep(0.005)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search


async def test_by_default_candidates_come_from_this_machine(monkeypatch):
    asked: list[str | None] = []

    def found(*, remembered: str | None = None) -> list[Candidate]:
        asked.append(remembered)
        return []

    monkeypatch.setattr(discovery, "candidates", found)
    assert await discover("2020-07-01", remembered=WELL_KNOWN) == (None, [])
    assert asked == [WELL_KNOWN]


async def test_the_real_probe_asks_the_candidate():
    async with CannedServer(http(body=QUIET)) as server:
        answer = await asker("2020-07-01", Budget())(Candidate(server.url, "constant"))
    assert isinstance(answer, Answer)
