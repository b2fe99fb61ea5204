"""Which topics may meet, and which filters MQTT takes."""

import pytest

from sinks.mqtt.topics import may_meet, validate_filter


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/b", "a/b/c", False),
        ("a/{subject}", "a/b", True),
        ("a/{subject}", "a/{vm_id}", True),
        ("a/x-{subject}", "a/y-{vm_id}", False),
        ("a/x-{subject}", "a/x", False),
        ("a/{subject}-x", "a/{vm_id}-y", False),
        ("a/{subject}", "a/b/c", False),
        ("a/{subject}", "a/+", True),
        ("a/{subject}", "a/#", True),
        ("a", "a/#", True),
        ("a", "b/#", False),
        ("a/b/c", "#", True),
        ("azure/scheduled-events/events/{subject}", "azure/scheduled-events/approvals", False),
        ("azure/scheduled-events/events/{subject}", "azure/scheduled-events/+", False),
        ("azure/scheduled-events/events/{subject}", "azure/+/events/+", True),
    ],
)
def test_topics_that_may_overlap_are_found(one, other, meet):
    assert may_meet(one, other) is meet
    assert may_meet(other, one) is meet


@pytest.mark.parametrize("good", ["a", "a/+/b", "a/#", "#", "+", "{vm_name}/+"])
def test_filters_that_mqtt_takes(good):
    assert validate_filter(good) == good


@pytest.mark.parametrize("bad", ["", "a+/b", "a/#/b", "a#", "$SYS/#", "{subject}"])
def test_filters_that_mqtt_does_not_take_are_refused(bad):
    with pytest.raises(ValueError):
        validate_filter(bad)
