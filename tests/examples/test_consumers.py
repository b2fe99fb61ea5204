"""What the consumers in `examples/` make of a CloudEvent, whatever brings it."""

import ast
import asyncio
import copy
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.cloudevents import STATE, make
from support.example_process import EXAMPLES, loaded
from support.webhook_receiver import receiving, says

KINDS = ["kafka", "mqtt", "http"]
PROGRAMS = [EXAMPLES / f"{kind}-consumer" / "consumer.py" for kind in KINDS]
SHARED = ("hear", "work")
NOW = datetime.now(UTC)


def source(program: Path, name: str) -> str:
    text = program.read_text(encoding="utf-8")
    [found] = [node for node in ast.parse(text).body if getattr(node, "name", "") == name]
    segment = ast.get_source_segment(text, found)
    assert segment is not None
    return segment


@pytest.mark.parametrize("name", SHARED)
def test_what_the_three_have_in_common_is_the_same_text(name):
    assert len({source(program, name) for program in PROGRAMS}) == 1


@pytest.mark.parametrize("program", PROGRAMS, ids=KINDS)
def test_a_consumer_needs_nothing_of_the_bridge(program):
    tree = ast.walk(ast.parse(program.read_text(encoding="utf-8")))
    imported = {
        name
        for node in tree
        for name in (
            [node.module]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    tops = {str(name).split(".")[0] for name in imported} - sys.stdlib_module_names
    assert tops <= {"aiokafka", "paho"}


def cloudevent(after: float = 0, **data: Any) -> dict[str, Any]:
    """A reboot of vm-0 in an hour, observed some seconds after now."""
    event = copy.deepcopy(make().envelope)
    event["time"] = (NOW + timedelta(seconds=after)).isoformat().replace("+00:00", "Z")
    due = (NOW + timedelta(hours=1)).isoformat()
    usual = {"eventId": "E-1", "rank": 1, "status": "Scheduled", "resources": ["other", "VM-0"]}
    event["data"] |= {**usual, "approvable": True, "approveBy": due, "drill": False, **data}
    return event


STARTED: dict[str, Any] = {"rank": 2, "status": "Started", "approvable": False, "approveBy": None}
OVER: dict[str, Any] = {"rank": 4, "status": "Completed", "approvable": False, "approveBy": None}


class Mind:
    """What a consumer decides, without any transport."""

    def __init__(self, **environment: str) -> None:
        names = loaded("kafka-consumer/consumer.py", SECONDS="0", **environment)
        self.hear, self.work, self.known = names["hear"], names["work"], names["known"]

    def told(self, event: dict[str, Any]) -> dict[str, Any] | None:
        news = self.hear(event)
        return self.work(news) if news else None


def test_an_announcement_is_drained_for_and_approved(capsys):
    mind = Mind(VM="vm-0", APPROVER="orders")
    vote = mind.told(cloudevent())
    assert vote is not None
    assert vote.pop("id")
    assert vote == {
        "eventId": "E-1", "approver": "orders", "resource": "vm-0",
        "decision": "approve", "reason": "drained", "seen": STATE,
    }  # fmt: skip
    assert "draining: 3 orders left" in capsys.readouterr().out
    mind.told(cloudevent(9, **OVER))
    assert "the queue is open" in capsys.readouterr().out


@pytest.mark.parametrize(
    "event",
    [
        cloudevent(resources=["other", "vm-00"]),
        cloudevent(**STARTED),
        cloudevent(**OVER),
        cloudevent(approveBy=(NOW - timedelta(seconds=1)).isoformat()),
        cloudevent() | {"data": {"approvalId": "a-1", "decision": "approve"}},
    ],
    ids=["of other VMs", "started", "over", "too late", "an outcome"],
)
def test_nothing_else_is_approved(event):
    assert Mind().told(event) is None


def test_other_vms_are_none_of_our_business():
    assert Mind().hear(cloudevent(resources=["other"])) is None


def test_who_observed_it_does_not_matter():
    event = cloudevent()
    event["data"]["observer"] |= {"vm": "somebody", "affected": False}
    assert Mind().told(event)


def test_the_highest_rank_counts_and_among_equals_the_latest():
    mind = Mind()
    assert mind.told(cloudevent())
    assert mind.hear(cloudevent()) is None, "a copy"
    assert mind.told(cloudevent(5, notBefore=None)), "an update"
    assert mind.hear(cloudevent(3)) is None, "an older update"
    assert mind.hear(cloudevent(1, **STARTED)), "a higher rank, though observed earlier elsewhere"
    assert mind.hear(cloudevent(60)) is None, "a lower rank"


def test_an_event_that_returns_after_its_end_is_news():
    mind = Mind(VM="vm-0")
    assert mind.told(cloudevent()) is not None
    mind.told(cloudevent(1, **OVER))
    assert mind.told(cloudevent(2)) is None, "a late copy"
    assert mind.told(cloudevent(2, life=2)) is not None


def test_a_vote_has_the_same_id_after_a_restart_and_another_for_other_news():
    event, other = cloudevent(), cloudevent(1) | {"id": "another"}
    votes = [Mind().told(event), Mind().told(event), Mind().told(other)]
    votes += [Mind(VM="other").told(event), Mind(APPROVER="billing").told(event)]
    ids = [vote["id"] for vote in votes if vote]
    assert len(ids) == len(votes)
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4


def test_a_drill_is_answered_and_nothing_is_drained(capsys):
    vote = Mind().told(cloudevent(drill=True))
    assert vote is not None
    assert vote["reason"] == "a drill"
    assert "draining" not in capsys.readouterr().out


def test_an_event_that_leaves_our_vm_alone_opens_the_queue_again(capsys):
    mind = Mind()
    mind.told(cloudevent())
    assert mind.told(cloudevent(1, resources=["other"])) is None
    assert "the queue is open" in capsys.readouterr().out


def test_the_queue_stays_closed_until_the_last_of_them_is_over(capsys):
    mind = Mind()
    for name in ("E-1", "E-2"):
        mind.told(cloudevent(eventId=name))
    assert capsys.readouterr().out.count("draining") == 3, "the second finds it drained"
    mind.told(cloudevent(1, eventId="E-1", **OVER))
    assert "the queue is closed" in capsys.readouterr().out
    mind.told(cloudevent(1, eventId="E-2", **OVER))
    assert "the queue is open" in capsys.readouterr().out


def test_what_is_remembered_is_bounded():
    mind = Mind()
    for number in range(1010):
        mind.hear(cloudevent(eventId=f"E-{number}"))
    assert len(mind.known) == 1000
    assert "E-1009" in mind.known


async def test_over_http_a_vote_is_said_until_it_is_taken_or_refused(monkeypatch, capsys):
    monkeypatch.setattr("time.sleep", lambda _: None)
    async with receiving() as bridge:
        names = loaded("http-consumer/consumer.py", BRIDGE=bridge.url, SEB_TOKEN="t")
        bridge.answers += [
            says(503),
            says(429),
            says(202, '{"outcomes": [{"outcome": "granted"}]}'),
        ]
        await asyncio.to_thread(names["approve"], {"eventId": "E-1"})
        assert "ready, and said so: granted" in capsys.readouterr().out
        assert [got.headers["Authorization"] for got in bridge.got] == ["Bearer t"] * 3
        bridge.answers.append(says(409, "it has started"))
        await asyncio.to_thread(names["approve"], {"eventId": "E-1"})
    assert "refused: it has started" in capsys.readouterr().out
