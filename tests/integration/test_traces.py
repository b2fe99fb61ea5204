"""One trace from the poll to each delivery, and one from a vote to the POST, seen by an OTLP receiver."""

import json
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.bridge_process import Stage, announce, posts, stage
from support.otlp_receiver import Receiver, plain, receiver
from support.ports import free_ports
from support.until import until

from bridge.telemetry.context import new_trace, read_traceparent

Json = dict[str, Any]


def told(at: Stage, kind: str) -> list[Json]:
    """The CloudEvents of a kind that the sink `left` has written."""
    file = at.folder / "left.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [one for one in map(json.loads, lines) if one["type"].endswith(f".{kind}.v1")]


def deliveries(got: Receiver, cloudevent: Json) -> list[Any]:
    spans = [one for one in got.spans if one.name.startswith("deliver ")]
    return [
        one for one in spans if plain(one.attributes)["cloudevents.event_id"] == cloudevent["id"]
    ]


async def test_a_poll_its_cloudevents_and_their_deliveries_are_one_trace(tmp_path: Path):
    async with (
        receiver() as got,
        stage(tmp_path, telemetry={"otlp": got.url}) as at,
    ):
        await at.start()
        announce(at, "reboot", started_for=None)
        await at.until(lambda: told(at, "scheduled"), "the announcement")
        [scheduled] = told(at, "scheduled")
        await at.until(lambda: len(deliveries(got, scheduled)) == 2, "both deliveries")
        assert await at.stop() == 0
    [record] = got.named("record scheduled")
    [poll] = [one for one in got.named("poll") if one.span_id == record.parent_span_id]
    trace = read_traceparent(scheduled["traceparent"])
    assert trace is not None
    assert trace.span_id == record.span_id.hex()
    steps = [poll, record, *deliveries(got, scheduled)]
    assert {one.trace_id.hex() for one in steps} == {trace.trace_id}
    assert {one.parent_span_id for one in steps[2:]} == {record.span_id}
    assert {plain(one.attributes)["seb.sink"] for one in steps[2:]} == {"left", "right"}
    begins = [one.start_time_unix_nano for one in steps]
    assert begins[0] <= begins[1] <= min(begins[2:])
    assert got.resource["host.name"] == "vm-0"


async def test_a_vote_continues_the_trace_of_its_sender_to_the_post_and_the_outcome(tmp_path: Path):
    mine = new_trace()
    async with receiver() as got, stage(tmp_path, telemetry={"otlp": got.url}) as at:
        [port] = free_ports(1)
        token = {"name": "orders", "token": "orders-secret-1"}
        at.configure(http={"listen": f"127.0.0.1:{port}", "tokens": [token]})
        await at.start()
        await at.until_said("http.listening")
        event = announce(at, "reboot", started_for=None)
        await at.until(lambda: told(at, "scheduled"), "the announcement")
        async with aiohttp.ClientSession() as session:
            headers = {"Authorization": "Bearer orders-secret-1", "traceparent": str(mine)}
            url = f"http://127.0.0.1:{port}/api/v1/approvals"
            async with session.post(url, json={"eventId": event}, headers=headers) as answer:
                assert answer.status == 202, await answer.text()
        await at.until(lambda: posts(at), "the POST")
        await at.until(lambda: told(at, "approval.granted"), "the outcome")
        await at.until(lambda: got.named("start request"), "the span of the POST")
        [granted] = told(at, "approval.granted")
        await at.stop()
    [vote] = got.named("vote")
    [request] = got.named("start request")
    assert vote.trace_id.hex() == request.trace_id.hex() == mine.trace_id
    assert vote.parent_span_id.hex() == mine.span_id
    assert request.parent_span_id == vote.span_id
    assert plain(request.attributes)["seb.event_ids"] == [event]
    outcome = read_traceparent(granted["traceparent"])
    assert outcome is not None
    assert outcome.trace_id == mine.trace_id


@pytest.mark.timeout(120)
async def test_a_killed_bridge_sends_the_same_bytes_and_continues_the_trace(tmp_path: Path):
    """The sink `left` cannot write until the process was killed: its delivery is of the next one."""
    (tmp_path / "left.jsonl").mkdir(parents=True)
    async with receiver() as got, stage(tmp_path, telemetry={"otlp": got.url}) as at:
        await at.start()
        announce(at, "reboot", started_for=None)
        right = tmp_path / "right.jsonl"
        await at.until(lambda: right.exists() and b"scheduled.v1" in right.read_bytes(), "right")
        await at.kill()
        (tmp_path / "left.jsonl").rmdir()
        await at.start()
        await at.until(lambda: told(at, "scheduled"), "the announcement")
        [scheduled] = told(at, "scheduled")
        at_last = {"seb.sink": "left", "seb.result": "delivered"}
        await at.until(
            lambda: any(
                at_last.items() <= plain(one.attributes).items()
                for one in deliveries(got, scheduled)
            ),
            "the delivery",
        )
        await at.stop()
    lines = [line for line in right.read_bytes().splitlines() if b".scheduled.v1" in line]
    left = (tmp_path / "left.jsonl").read_bytes().splitlines()
    assert set(lines) <= set(left), "the bytes of the journal, whichever process sends them"
    trace = read_traceparent(scheduled["traceparent"])
    assert trace is not None
    assert {one.trace_id.hex() for one in deliveries(got, scheduled)} == {trace.trace_id}


async def test_a_dead_receiver_delays_nothing(tmp_path: Path):
    [dead] = free_ports(1)
    async with stage(tmp_path, telemetry={"otlp": f"http://127.0.0.1:{dead}"}) as at:
        await at.start()
        announce(at, "reboot", started_for=None)
        await at.until(lambda: told(at, "scheduled"), "the announcement")
        await at.until_said("telemetry.unavailable")
        assert await at.stop() == 0


def protobuf_is_loaded(at: Stage) -> bool:
    return "_upb" in Path(f"/proc/{at.process.pid}/maps").read_text()


async def test_without_the_section_there_is_no_attribute_and_no_library_until_a_reload(
    tmp_path: Path,
):
    async with receiver() as got, stage(tmp_path) as at:
        await at.start()
        await at.until_said("http.listening")
        announce(at, "reboot", started_for=None)
        await at.until(lambda: told(at, "scheduled"), "the announcement")
        assert not protobuf_is_loaded(at)
        at.configure(telemetry={"otlp": got.url})
        at.signal(signal.SIGHUP)
        await at.until_said("configuration.loaded")
        announce(at, "another", started_for=None)
        await at.until(lambda: len(told(at, "scheduled")) == 2, "the next announcement")
        await at.until(lambda: got.named("record scheduled"), "its span")
        assert protobuf_is_loaded(at)
        first, second = told(at, "scheduled")
        await at.stop()
    assert "traceparent" not in first
    assert read_traceparent(second["traceparent"])


async def test_run_once_sends_its_spans_before_it_ends(tmp_path: Path):
    async with receiver() as got, stage(tmp_path, telemetry={"otlp": got.url}) as at:
        announce(at, "reboot", started_for=None)
        assert await at.once() == 0
        await until(lambda: got.named("record scheduled"), "the spans", at.output)
