from typing import get_args

from bridge.runtime.runbook import ANCHORS, Topic, link


def test_each_topic_has_a_section_of_its_own():
    assert list(ANCHORS) == list(get_args(Topic))
    assert len(set(ANCHORS.values())) == len(ANCHORS)


def test_a_link_is_relative_to_the_root_of_the_project():
    assert link("clock") == "docs/runbook.md#the-clock-is-wrong"
