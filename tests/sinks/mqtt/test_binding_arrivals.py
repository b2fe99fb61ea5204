"""What the reader of approvals makes of an MQTT message."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from bridge.policy.message import APPROVE, MalformedApproval, NotForUs, read
from sinks.mqtt.binding import Arrival, Backlog, LastHeard, away_since, body_of, headers_of

EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"
BODY = json.dumps({"eventId": EVENT, "approver": "orders"}).encode()
STATE = "a3c1" * 16
CORRELATION = f"{EVENT}/{STATE}".encode()
ATTRIBUTES = [
    ("specversion", "1.0"),
    ("id", "1"),
    ("source", "/orders"),
    ("type", APPROVE),
]


def said(arrival: Arrival, *, signed: bool = False):
    (approval,) = read(body_of(arrival, signed=signed), headers_of(arrival))
    return approval


def test_plain_json_needs_no_properties():
    assert said(Arrival(BODY)).event_id == EVENT


def test_in_binary_mode_the_user_properties_are_the_attributes():
    approval = said(Arrival(BODY, "application/json", ATTRIBUTES))
    assert (approval.key, approval.id, approval.approver) == ("/orders\x1f1", "1", "orders")


def test_the_javascript_sdk_repeats_the_content_type_as_a_user_property():
    user = [*ATTRIBUTES, ("datacontenttype", "application/json")]
    assert said(Arrival(BODY, "application/json", user)).id == "1"


def test_in_structured_mode_the_payload_counts_and_user_properties_do_not():
    envelope = {**dict(ATTRIBUTES), "data": json.loads(BODY)}
    repeated = [*ATTRIBUTES, ("id", "another")]
    arrival = Arrival(
        json.dumps(envelope).encode(), "Application/CloudEvents+json; charset=utf-8", repeated
    )
    assert said(arrival).id == "1"


def test_user_properties_without_a_sign_of_a_cloudevent_are_not_attributes():
    user = [("id", "7"), ("type", "com.example"), ("trace", "x"), ("trace", "y")]
    assert said(Arrival(BODY, None, user)).id.startswith("sha256-")


GO = [(f"ce-{name}", value) for name, value in ATTRIBUTES]


def test_the_go_sdk_writes_attributes_with_a_prefix_and_the_content_type_among_them():
    user = [*GO, ("Content-Type", "application/json")]
    approval = said(Arrival(BODY, None, user))
    assert (approval.key, approval.id, approval.approver) == ("/orders\x1f1", "1", "orders")


@pytest.mark.parametrize(
    "user",
    [GO[:3], GO[3:], [("ce_id", "1")], [("SpecVersion", "0.3")], [("spec_version", "1.0")],
     [("cloudEventsVersion", "0.1")], [("type", APPROVE)]],
    ids=str,
)  # fmt: skip
def test_what_has_a_sign_of_a_cloudevent_is_never_plain_json(user):
    with pytest.raises(MalformedApproval):
        said(Arrival(BODY, None, user))
    with pytest.raises(MalformedApproval):
        said(Arrival(b"", None, user, EVENT.encode()))


@pytest.mark.parametrize("name", ["ce-type", "ce_type", "type"])
def test_a_scheduled_event_is_never_an_approval(name):
    with pytest.raises(NotForUs):
        said(Arrival(BODY, None, [*GO[:3], (name, "azure.scheduledevents.scheduled.v1")]))
    with pytest.raises(NotForUs):
        said(Arrival(BODY, None, [(name, "azure.scheduledevents.scheduled.v1")]))


def test_a_content_type_among_the_user_properties_is_a_sign_too():
    user = [("content-type", "application/cloudevents+json")]
    with pytest.raises(MalformedApproval):
        said(Arrival(BODY, None, user))


def test_an_empty_message_that_answers_nothing_is_a_tombstone():
    assert Arrival(b"").is_tombstone
    assert Arrival(b"", "application/json", [("trace", "x")]).is_tombstone
    assert not Arrival(b"{}").is_tombstone
    assert not Arrival(b"", correlation=EVENT.encode()).is_tombstone
    assert not Arrival(b"", None, GO[:1]).is_tombstone


def test_a_user_property_is_not_the_content_type():
    user = [("content-type", "application/cloudevents+json"), *ATTRIBUTES]
    assert said(Arrival(BODY, None, user)).id == "1"


@pytest.mark.parametrize("name", ["id", "ID", "specversion", "source", "type"])
def test_an_attribute_that_stands_twice_is_refused(name: str):
    with pytest.raises(MalformedApproval, match="occurs twice"):
        said(Arrival(BODY, "application/json", [*ATTRIBUTES, (name, "x")]))


@pytest.mark.parametrize("missing", ["id", "source", "type"])
def test_an_attribute_that_is_missing_is_not_made_up(missing: str):
    user = [pair for pair in ATTRIBUTES if pair[0] != missing]
    with pytest.raises(MalformedApproval, match=missing):
        said(Arrival(BODY, "application/json", user))


def test_other_cloudevents_of_ours_are_not_for_us():
    user = [*ATTRIBUTES[:3], ("type", "azure.scheduledevents.started.v1")]
    with pytest.raises(NotForUs):
        said(Arrival(BODY, "application/json", user))


def test_what_signs_a_message_is_passed_on():
    user = [("webhook-id", "msg_1"), ("Webhook-Timestamp", "1"), ("webhook-signature", "v1,x")]
    assert headers_of(Arrival(BODY, None, user)) == [
        ("webhook-id", b"msg_1"),
        ("webhook-timestamp", b"1"),
        ("webhook-signature", b"v1,x"),
    ]
    assert said(Arrival(BODY, None, user)).id == "msg_1"


def test_an_empty_answer_approves_what_it_answers():
    approval = said(Arrival(b"", correlation=EVENT.encode()))
    assert (approval.event_id, approval.decision, approval.approver) == (EVENT, "approve", None)


def test_an_answer_is_about_the_state_that_its_correlation_data_returns():
    assert said(Arrival(b"", correlation=EVENT.encode())).seen is None, "as older bridges wrote it"
    for payload in (b"", BODY, BODY + b" \n", BODY.replace(b"602D9444", b"602d9444")):
        approval = said(Arrival(payload, correlation=CORRELATION))
        assert (approval.event_id.upper(), approval.seen) == (EVENT, STATE)


@pytest.mark.parametrize(
    "payload",
    [
        json.dumps({"eventId": EVENT, "seen": "other"}).encode(),
        json.dumps({"eventId": EVENT, "Seen": "other"}).encode(),
        json.dumps({"eventId": "another"}).encode(),
        json.dumps({"StartRequests": [{"EventId": EVENT}]}).encode(),
        json.dumps([EVENT]).encode(),
        b"[" * 100_000,
        b"\xff",
        b"?",
    ],
)
def test_what_says_itself_or_is_about_something_else_is_left_as_it_is(payload: bytes):
    assert body_of(Arrival(payload, correlation=CORRELATION), signed=False) == payload


def test_a_field_that_occurs_twice_stays_twice():
    twice = f'{{"eventId": "{EVENT}", "decision": "hold", "decision": "approve"}}'.encode()
    with pytest.raises(MalformedApproval):
        said(Arrival(twice, correlation=CORRELATION))


def test_correlation_data_is_not_signed_and_completes_nothing_that_is_or_must_be():
    for payload in (b"", BODY):
        assert body_of(Arrival(payload, correlation=CORRELATION), signed=True) == payload
    signed = Arrival(BODY, None, [("Webhook-Signature", "v1,x")], CORRELATION)
    assert body_of(signed, signed=False) == BODY


@pytest.mark.parametrize(
    "arrival",
    [
        Arrival(b""),
        Arrival(b"", correlation=b""),
        Arrival(b"", correlation=b"\xff\xfe"),
        Arrival(b"", correlation=b"two words"),
        Arrival(b"", correlation=b'"}'),
        Arrival(b"", correlation=b"x" * 129),
        Arrival(b"", correlation=EVENT.encode() + b"/0123"),
        Arrival(b"", "application/json", ATTRIBUTES, EVENT.encode()),
        Arrival(b"{}", correlation=EVENT.encode()),
        Arrival(b"null", correlation=EVENT.encode()),
    ],
)
def test_nothing_else_is_completed_from_correlation_data(arrival: Arrival):
    with pytest.raises(MalformedApproval):
        said(arrival)


def test_where_a_signature_is_needed_an_empty_answer_approves_nothing():
    with pytest.raises(MalformedApproval):
        said(Arrival(b"", correlation=EVENT.encode()), signed=True)


NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def test_messages_soon_after_a_reconnect_were_given_before_the_connection_was_lost():
    backlog = Backlog(NOON, connected=100.0)
    assert backlog.given(101.0, 101.0, more=False) == NOON
    assert backlog.given(109.9, 110.5, more=False) == NOON
    assert backlog.given(110.1, 110.1, more=False) is None


def test_a_backlog_ends_when_nothing_waits_behind_a_message():
    """A large one takes longer than ten seconds, and its last messages are as old as the first."""
    backlog = Backlog(NOON, connected=100.0)
    for second in range(1, 30):
        assert backlog.given(100.0 + second, 100.0 + second, more=True) == NOON
    assert backlog.given(129.5, 129.5, more=False) == NOON
    assert backlog.given(131.5, 131.5, more=False) is None
    assert backlog.given(131.6, 131.6, more=True) is None


def test_without_an_absence_messages_are_given_when_they_arrive():
    assert Backlog(None, connected=100.0).given(100.0, 100.0, more=True) is None


@pytest.mark.parametrize(
    ("heard", "wall", "moment"),
    [
        (40.0, NOON + timedelta(seconds=240), NOON + timedelta(seconds=240)),
        (40.0, LATER + timedelta(hours=1), NOON + timedelta(seconds=240)),
        (90.0, NOON, NOON),
    ],
    ids=["the clocks agree", "the clock was set back", "the machine was suspended"],
)
def test_the_earlier_of_two_clocks_says_when_the_server_was_last_heard(heard, wall, moment):
    assert LastHeard(heard, wall).moment(100.0, LATER) == moment


@pytest.mark.parametrize(
    ("known", "noted", "session", "since"),
    [
        (LastHeard(40.0, NOON), LATER, False, NOON),
        (None, LATER, False, LATER),
        (None, LATER, True, LATER),
        (None, None, False, None),
        (None, None, True, datetime.fromtimestamp(0, UTC)),
    ],
    ids=["reconnect", "restart", "restart with a session", "first start", "lost journal"],
)
def test_since_when_the_server_may_have_kept_messages(known, noted, session, since):
    assert away_since(known, noted, session_present=session, at=(100.0, LATER)) == since
