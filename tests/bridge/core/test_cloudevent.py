"""The short names of CloudEvents: static, printable, and short enough for syslog."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cloudevents import make
from support.world import published

from bridge.core.messages import KINDS
from bridge.plugins import class_id, kind_of

TYPE = "azure.scheduledevents.{}.v1"


def test_a_transition_is_named_by_what_azure_does_and_what_happened_to_it():
    assert class_id(make()) == "azse.reboot.scheduled"
    updated = replace(make(eventType="Terminate"), type=TYPE.format("updated"))
    assert class_id(updated) == "azse.terminate.updated"


@pytest.mark.parametrize("cloudevent", published().values(), ids=lambda each: each.type)
def test_each_kind_has_a_word_of_its_own(cloudevent):
    word = class_id(cloudevent)
    assert re.fullmatch(r"azse\.(reboot|approval|source|bridge)\.[a-z]+", word)
    assert word.endswith(kind_of(cloudevent).rpartition(".")[2])


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
