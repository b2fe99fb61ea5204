"""The short names of CloudEvents: static, printable, and short enough for syslog."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cloudevents import make
from support.world import NOON, OBSERVER, published

from bridge.core.messages import KINDS, audited
from bridge.plugins import class_id, kind_of

TYPE = "azure.scheduledevents.{}.v1"


def test_a_transition_is_named_by_what_azure_does_and_what_happened_to_it():
    assert class_id(make()) == "azse.reboot.scheduled"
    updated = replace(make(eventType="Terminate"), type=TYPE.format("updated"))
    assert class_id(updated) == "azse.terminate.updated"


@pytest.mark.parametrize("cloudevent", published().values(), ids=lambda each: each.type)
def test_each_kind_has_a_word_of_its_own(cloudevent):
    word = class_id(cloudevent)
    assert re.fullmatch(r"azse\.(reboot|approval|source|audit)\.[a-z.-]+", word)
    if kind_of(cloudevent) != "bridge.audited":
        assert word.endswith(kind_of(cloudevent).rpartition(".")[2])


ACTIONS = sorted(
    action
    for path in (Path(__file__).parents[3] / "bridge").rglob("*.py")
    for action in re.findall(r'audit\(\s*(?:\w+, )?"([a-z.-]+)"', path.read_text(encoding="utf-8"))
)
"""What the code audits."""


def test_each_audited_action_has_a_word_of_its_own():
    assert {"configuration.loaded", "drill.started", "journal.lost"} <= set(ACTIONS)
    words = {
        class_id(audited(action, OBSERVER, NOON, actor="a", via="v", detail={}))
        for action in (*ACTIONS, "token.refused", "certificate.refused")
    }
    assert words == {f"azse.audit.{action}" for action in ACTIONS} | {
        "azse.audit.token.refused",
        "azse.audit.certificate.refused",
    }


@settings(max_examples=60)
@given(st.text(max_size=40))
def test_whatever_the_action_the_word_fits(action):
    made = audited(action, OBSERVER, NOON, actor="a", via="v", detail={})
    assert re.fullmatch(r"azse\.audit\.[a-z0-9.-]{1,21}", class_id(made))


def test_no_two_kinds_share_a_word():
    assert len({class_id(each) for each in published().values()}) == len(published())


def test_the_kind_is_the_type_without_its_prefix_and_version():
    assert {kind_of(each) for each in published().values()} == set(KINDS)
    assert kind_of(replace(make(), type="another.thing")) == "another.thing"


@pytest.mark.parametrize(
    ("event_type", "word"),
    [
        ("LiveMigrate", "azse.livemigrate.scheduled"),
        ("Live Migrate|é\n", "azse.livemigrate.scheduled"),
        ("再起動", "azse.other.scheduled"),
        ("A" * 99, f"azse.{'a' * 17}.scheduled"),
    ],
)
def test_future_types_of_azure_fit_too(event_type, word):
    assert class_id(make(eventType=event_type)) == word


@settings(max_examples=60)
@given(st.text(max_size=40), st.sampled_from(KINDS))
def test_whatever_the_type_the_word_is_printable_and_has_at_most_32_characters(event_type, kind):
    made = replace(make(eventType=event_type), type=TYPE.format(kind))
    assert re.fullmatch(r"azse\.[!-~]{1,27}", class_id(made))
