"""The keys of the command sink, and what its commands are told in their environment."""

import json
from datetime import datetime

import pytest
from pydantic import ValidationError
from support.cloudevents import HOSTILE, make
from support.world import published

from bridge.plugins import find_sink
from sinks.command.environment import LONGEST, variables

plugin = find_sink("command")
DUE = datetime.fromisoformat("2026-11-15T18:29:47Z").timestamp()


def settings(**keys):
    return plugin.settings.model_validate({"type": "command", "argv": ["true"], **keys})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"argv": []}, "at least 1 item"),
        ({"argv": [""]}, "an absolute path, or a name that is found on PATH"),
        ({"argv": ["bin/drain"]}, "an absolute path, or a name that is found on PATH"),
        ({"argv": ["./drain"]}, "an absolute path, or a name that is found on PATH"),
        ({"argv": ["true", "a\0b"]}, "NUL"),
        ({"argv": "true"}, "valid list"),
        ({"cwd": "here"}, "the directory is an absolute path"),
        ({"env": {"A-B": "x"}}, "pattern"),
        ({"env": {"event_ID": "x"}}, "event_ID is taken"),
        ({"env": {"A": ""}}, "not empty"),
        ({"timeout": "0s"}, "greater than 0"),
        ({"concurrency": 0}, "greater than or equal to 1"),
        ({"then": "hold"}, "approve"),
    ],
)
def test_a_key_that_cannot_work_is_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        settings(**keys)


def test_it_says_what_it_will_do_without_its_arguments():
    one = settings(argv=["/opt/drain", "--token=hush"], then="approve")
    assert one.describe() == (
        "runs /opt/drain for each CloudEvent (JSON on stdin), one at a time, each for 5m at most, "
        "and casts this VM's vote when that succeeds"
    )
    assert "up to 4 at a time, each for 90s" in settings(concurrency=4, timeout="90s").describe()


def test_a_batch_is_what_runs_at_once_and_the_notice_does_not_shorten_it():
    assert settings(concurrency=3).largest_batch == 3
    assert settings(timeout="10m").longest_send > 600


def test_the_variables_tell_of_the_scheduled_event():
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
