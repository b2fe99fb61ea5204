"""The headers of a message, as transports and senders write them."""

import pytest

from bridge.policy.attributes import MessageHead, attribute_of, has_sign, is_ours, matters

PLAIN = [("Content-Type", b"application/json"), ("webhook-id", b"w"), ("traceparent", b"\xff")]


def test_what_has_no_sign_of_a_cloudevent_has_no_attributes():
    assert MessageHead.read([*PLAIN, ("id", b"7")]) == MessageHead("application/json", "w", {})


def test_with_a_prefix_only_prefixed_names_are_attributes():
    found = MessageHead.read([*PLAIN, ("id", b"7"), ("CE-Id", b"1"), ("ce_type", b"t")])
    assert found.attributes == {"id": "1", "type": "t"}


def test_without_a_prefix_every_other_header_is_an_attribute():
    found = MessageHead.read([*PLAIN[:2], ("SpecVersion", b"1.0"), ("id", b"7"), ("ce-type", b"t")])
    assert found.attributes == {"specversion": "1.0", "id": "7", "type": "t"}


@pytest.mark.parametrize("name", ["content-type", "webhook-id", "ce_id"])
def test_a_header_may_occur_only_once_and_must_be_text(name):
    with pytest.raises(ValueError, match="occurs twice"):
        MessageHead.read([(name, b"1"), (name.upper(), b"1")])
    with pytest.raises(ValueError, match="is not UTF-8"):
        MessageHead.read([(name, b"\xff")])


def test_a_header_that_is_signed_is_never_an_attribute():
    assert attribute_of("webhook-signature", unprefixed=True) is None
    assert attribute_of("ce-webhook-id", unprefixed=False) == "webhook-id"


def test_only_some_headers_matter():
    assert all(
        matters(name) for name in ("Content-Type", "ce-x", "webhook-id", "id", "Spec-Version")
    )
    assert not any(matters(name) for name in ("authorization", "cookie", "x-ce-id", "accept"))


def test_a_type_of_ours_is_a_sign_by_itself():
    assert is_ours("Azure.ScheduledEvents.x")
    assert not is_ours(7)
    assert has_sign({"type": "azure.scheduledevents.approve.v1"})
    assert not has_sign({"type": "com.example", "version": "1.0"})
