"""What a command is told in its environment, and what it is not."""

import json
import os
import sys
from datetime import datetime

import pytest
from support.cloudevents import HOSTILE, STATE, make
from support.command_runs import outcome, shell
from support.world import published

from bridge.plugins import Delivered
from sinks.command.environment import LONGEST, variables

DUE = datetime.fromisoformat("2026-11-15T18:29:47Z").timestamp()


def test_the_variables_describe_the_scheduled_event():
    told = variables(make(key="E-1"), DUE - 61.5)
    assert told == {
        "EVENT_ID": "E-1",
        "EVENT_TYPE": "Reboot",
        "EVENT_STATUS": "Scheduled",
        "EVENT_KIND": "scheduled",
        "EVENT_RESOURCES": "FrontEnd_IN_0,BackEnd_IN_0",
        "EVENT_NOT_BEFORE": "2026-11-15T18:29:47Z",
        "EVENT_APPROVE_BY": "2026-11-15T18:29:42Z",
        "EVENT_NOTICE_SECONDS": "899.4",
        "EVENT_SECONDS_LEFT": "61",
        "EVENT_DURATION_SECONDS": "-1",
        "EVENT_SOURCE": "User",
        "EVENT_DESCRIPTION": "Virtual machine is being restarted as requested by authorized user.",
        "EVENT_APPROVABLE": "true",
        "EVENT_DRILL": "false",
        "EVENT_STATE": STATE,
        "EVENT_LIFE": "1",
        "EVENT_REASON": "",
        "EVENT_VM": "FrontEnd_IN_0",
        "EVENT_AFFECTED": "true",
        "EVENT_CLOUDEVENT_ID": make(key="E-1").id,
        "EVENT_CLOUDEVENT_TYPE": "azure.scheduledevents.scheduled.v1",
    }


def test_every_cloudevent_has_all_of_them():
    names = {frozenset(variables(event, DUE)) for event in published().values()}
    assert len(names) == 1
    refused = published()["azure.scheduledevents.approval.refused.v1"]
    told = variables(refused, DUE)
    assert (told["EVENT_KIND"], told["EVENT_REASON"]) == ("approval.refused", "resource-required")


@pytest.mark.parametrize(
    ("data", "left"),
    [
        ({}, "0"),
        ({"status": "Started"}, ""),
        ({"notBefore": None}, ""),
    ],
)
def test_the_seconds_left_end_with_the_notice(data, left):
    assert variables(make(**data), DUE + 5)["EVENT_SECONDS_LEFT"] == left


def test_nothing_that_the_system_cannot_pass_on_gets_into_a_variable():
    lone = json.loads('"\\ud800"')
    told = variables(
        make(description=HOSTILE + "x" * 10_000, resources=["n" * 3000] * 5, eventSource="a\0b"), 0
    )
    assert len(told["EVENT_DESCRIPTION"]) == LONGEST
    assert told["EVENT_RESOURCES"] == ",".join(["n" * 3000] * 2)
    assert told["EVENT_SOURCE"] == "ab"
    event = make(eventSource="?")
    body = event.body.replace(b'"eventSource":"?"', b'"eventSource":"\\ud800"')
    odd = type(event)(event.id, event.type, event.key, body)
    assert odd.data["eventSource"] == lone
    assert variables(odd, 0)["EVENT_SOURCE"] == "?"
    assert all("\0" not in text for text in told.values())


@pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
async def test_it_sees_neither_our_descriptors_nor_our_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SEB_TOKEN", "ours")
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    result = await outcome(shell("echo /proc/self/fd/*; env | cut -d= -f1"))
    os.close(reader)
    os.close(writer)
    assert isinstance(result, Delivered)
    words = (result.note or "").split()
    assert f"/proc/self/fd/{writer}" not in words
    names = {word for word in words if "/" not in word and not word.startswith("EVENT_")}
    assert names == {"PATH", "LANG", "HOME", "PWD"}
