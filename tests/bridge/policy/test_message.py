"""The strict reader: what it accepts, what it refuses, and that no input breaks it."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.common.spelling import marks_cloudevent
from bridge.policy.message import (
    APPROVE,
    LARGEST,
    MOST_EVENTS,
    MalformedApproval,
    NotForUs,
    claimed,
    read,
    unwrap,
)
from bridge.policy.votes import Approval

EVENT_ID = "602d9444-d2cd-49c7-8624-8643e7171297"
SAID = {"eventId": EVENT_ID, "approver": "orders", "resource": "vm-0", "reason": "drained"}
ENVELOPE = {"specversion": "1.0", "id": "a-1", "source": "/orders", "type": APPROVE, "data": SAID}
HEADERS = [("ce_specversion", b"1.0"), ("ce_id", b"a-1"), ("ce_source", b"/orders")]
BINARY = [*HEADERS, ("ce_type", APPROVE.encode())]
BARE = {name: value for name, value in ENVELOPE.items() if name != "data"}
STRUCTURED = [("content-type", b"application/cloudevents+json; charset=UTF-8")]


def encoded(value) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def one(body, headers=(), position=None) -> Approval:
    [found] = read(encoded(body), headers, position)
    return found


def refusal(body, headers=()) -> str:
    with pytest.raises(MalformedApproval) as caught:
        read(encoded(body), headers)
    return str(caught.value)


# --- what it takes -------------------------------------------------------------------------------


def test_plain_json_needs_nothing_but_an_event_id():
    found = one({"eventId": EVENT_ID})
    assert (found.event_id, found.decision, found.event_key) == (
        EVENT_ID,
        "approve",
        EVENT_ID.upper(),
    )
    assert (found.approver, found.resource, found.reason) == (None, None, None)
    assert found.id.startswith("sha256-")


def test_every_field_of_plain_json_is_read():
    found = one({**SAID, "decision": "hold", "id": "mine"})
    assert found == Approval(EVENT_ID, "mine", "mine", "hold", "orders", "vm-0", "drained")


@pytest.mark.parametrize(
    ("body", "headers"),
    [(ENVELOPE, STRUCTURED), (ENVELOPE, ()), (ENVELOPE, [("content-type", b"text/plain")]), (SAID, BINARY),
     (SAID, [*BINARY, ("content-type", b"Application/JSON")]),
     (SAID, [(name.replace("ce_", "ce-").title(), value) for name, value in BINARY])],
    ids=["structured", "without-content-type", "wrong-content-type", "binary", "binary-json", "http-names"],
)  # fmt: skip
def test_a_cloudevent_is_read_in_either_mode(body, headers):
    found = one(body, headers)
    assert found == Approval(
        EVENT_ID, "/orders\x1fa-1", "a-1", "approve", "orders", "vm-0", "drained"
    )


def test_the_content_type_decides_the_mode_not_the_headers():
    repeated = [*STRUCTURED, *HEADERS, ("ce_type", b"something.else")]
    assert one(ENVELOPE, repeated).id == "a-1"


def test_null_attributes_are_absent_and_unknown_ones_are_ignored():
    extras = {"subject": None, "time": None, "dataschema": None, "datacontenttype": None, "foo": 7}
    assert one({**ENVELOPE, **extras}, STRUCTURED).id == "a-1"
    assert one({**SAID, "decision": None, "later": {"v": 2}}).decision == "approve"


def test_other_fields_of_azures_own_body_apply_to_all_events():
    body = {"StartRequests": [{"EventId": "a"}, {"EventId": "b"}], "DocumentIncarnation": 4}
    assert [each.event_id for each in read(encoded(body), ())] == ["a", "b"]
    held = read(encoded({**body, "decision": "hold", "approver": "x", "id": "7"}), ())
    assert {(each.decision, each.approver, each.key) for each in held} == {("hold", "x", "7")}


def test_an_event_named_twice_counts_once():
    body = {"StartRequests": [{"EventId": "a"}, {"EventId": "A"}]}
    assert len(read(encoded(body), ())) == 1


# --- its key -------------------------------------------------------------------------------------


def test_the_key_is_the_first_name_that_the_message_has():
    webhook = [("Webhook-Id", b"w-1")]
    assert one({**ENVELOPE, "data": {**SAID, "id": "j"}}, webhook, "t/0/1").key == "/orders\x1fa-1"
    assert one({**SAID, "id": "j"}, webhook, "t/0/1").key == "j"
    assert one(SAID, webhook, "t/0/1").key == "w-1"
    assert one(SAID, (), "t/0/1").id == "t/0/1"
    assert one(SAID, (), "t/0/1").key == one(SAID, (), "t/0/1").key != one(SAID, (), "t/0/2").key
    assert one(SAID).key == one(SAID).key != one({**SAID, "reason": "x"}).key


def test_the_place_of_a_message_tells_equal_positions_apart():
    keys = {read(encoded(SAID), (), "t/0/1", place=place)[0].key for place in ("a", "b", None)}
    assert len(keys) == 3
    assert read(encoded({**SAID, "id": "j"}), (), "t/0/1", place="a")[0].key == "j"


@pytest.mark.parametrize("position", ["t/0/1", None])
def test_no_sender_can_use_up_the_key_of_a_message_that_has_no_id(position):
    """Otherwise a hold without an id could be dropped as a duplicate of a message sent before."""
    victim = one({"eventId": EVENT_ID, "decision": "hold"}, (), position)
    for name in (victim.id, victim.key):
        try:
            forged = one({"eventId": EVENT_ID, "id": name})
        except MalformedApproval:
            continue
        assert forged.key != victim.key


# --- signed --------------------------------------------------------------------------------------

SIGNATURE = [("webhook-id", b"w-1"), ("webhook-timestamp", b"7"), ("webhook-signature", b"v1,eA==")]
WRAPPED = {name: value.decode() for name, value in SIGNATURE}


def test_what_a_transport_without_headers_carries_is_unwrapped_to_the_byte():
    payload = '{"eventId":  "é"}'
    for stamp in ("7", 7):
        body = encoded({**WRAPPED, "webhook-timestamp": stamp, "payload": payload})
        assert unwrap(body, [("mqtt", b"x")]) == (payload.encode(), SIGNATURE)


@pytest.mark.parametrize(
    "body",
    [
        SAID,
        {**WRAPPED},
        {**WRAPPED, "payload": {"eventId": "x"}},
        {**WRAPPED, "payload": "x", "more": 1},
        {**WRAPPED, "webhook-id": 7, "payload": "x"},
        {**WRAPPED, "payload": "\ud800"},
        ["webhook-signature"],
        b'"webhook-signature" nonsense',
    ],
    ids=range(8),
)
def test_an_unwrapped_message_is_left_as_it_is(body):
    assert unwrap(encoded(body), BINARY) == (encoded(body), BINARY)


def test_a_message_with_signature_headers_is_not_unwrapped_and_a_large_one_not_read():
    body = encoded({**WRAPPED, "payload": "x"})
    assert unwrap(body, SIGNATURE) == (body, SIGNATURE)
    with pytest.raises(MalformedApproval, match="at most"):
        unwrap(b" " * (LARGEST + 1), ())


def test_only_the_id_is_read_from_the_headers_of_a_signed_message():
    [plain] = read(encoded(SAID), SIGNATURE, "t/0/1", signed=True)
    assert plain.key == "w-1"
    with pytest.raises(MalformedApproval, match="does not cover headers"):
        read(encoded(SAID), [*SIGNATURE, *BINARY], signed=True)
    with pytest.raises(MalformedApproval, match="is not the CloudEvent's id"):
        read(encoded(ENVELOPE), [*SIGNATURE, *STRUCTURED], signed=True)
    same = [("webhook-id", b"a-1"), *STRUCTURED]
    assert read(encoded(ENVELOPE), same, signed=True)[0].key == "/orders\x1fa-1"


# --- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["id", "source", "specversion", "type"])
@pytest.mark.parametrize("value", [None, "", 7, "a\x00b", "\ud800", "x" * 513], ids=repr)
def test_no_required_attribute_is_ever_made_up(name, value):
    assert name in refusal({**ENVELOPE, name: value}, STRUCTURED)
    absent = {key: each for key, each in ENVELOPE.items() if key != name}
    assert name in refusal(absent, STRUCTURED)


@pytest.mark.parametrize("name", ["ce_id", "ce_source", "ce_specversion", "ce_type"])
def test_no_required_header_is_ever_made_up(name):
    assert name[3:] in refusal(SAID, [pair for pair in BINARY if pair[0] != name])


@pytest.mark.parametrize("again", ["ce_id", "CE_ID", "ce-id", "content-type", "webhook-id"])
def test_a_repeated_header_is_refused(again):
    known = [*BINARY, ("content-type", b"application/json"), ("webhook-id", b"w")]
    assert "occurs twice" in refusal(SAID, [*known, (again, b"other")])


# --- signs of a CloudEvent -----------------------------------------------------------------------

UNPREFIXED = [(name.removeprefix("ce_"), value) for name, value in BINARY]
SPELLINGS = [
    "SpecVersion", "spec_version", "Spec-Version", "specVersion", "specverison", "cloudEventsVersion",
    "cloudevents-version", "ce_specversion", "ce-id", "ce_foo", "cloudEvents:specversion",
]  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_body_with_a_sign_of_a_cloudevent_is_never_plain_json(name):
    assert "the CloudEvent has no valid" in refusal({**SAID, name: "1.0"})


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_header_with_a_sign_of_a_cloudevent_makes_it_one(name):
    assert "the CloudEvent has no valid" in refusal(SAID, [(name, b"1.0")])


def test_attributes_without_a_prefix_are_read_too():
    """MQTT's binding has no prefix; on other transports senders forget it."""
    assert one(SAID, UNPREFIXED).key == "/orders\x1fa-1"
    assert one(SAID, [("SpecVersion", b"1.0"), *UNPREFIXED[1:]]).id == "a-1"


@pytest.mark.parametrize("again", ["id", "ID", "ce-id", "ce_id"])
def test_an_attribute_may_not_occur_with_and_without_its_prefix(again):
    assert "occurs twice" in refusal(SAID, [*UNPREFIXED, (again, b"other")])


@pytest.mark.parametrize(
    "headers",
    [[("type", b"azure.scheduledevents.scheduled.v1")], [("Type", b"Azure.ScheduledEvents.started.v1")],
     [*UNPREFIXED[:3], ("type", b"azure.scheduledevents.scheduled.v1")],
     [*HEADERS, ("ce-type", b"azure.scheduledevents.scheduled.v1")],
     [*STRUCTURED, ("ce-type", b"azure.scheduledevents.scheduled.v1")]],
    ids=["alone", "another case", "unprefixed", "prefixed", "beside a structured one"],
)  # fmt: skip
@pytest.mark.parametrize("body", [SAID, ENVELOPE], ids=["data", "envelope"])
def test_a_type_of_ours_in_a_header_is_not_for_us(headers, body):
    with pytest.raises(NotForUs):
        read(encoded(body), headers)


@pytest.mark.parametrize("more", [{}, {"specversion": "1.0"}, {"SpecVersion": "1.0"}], ids=str)
def test_a_type_of_ours_at_the_top_of_the_body_is_not_for_us(more):
    with pytest.raises(NotForUs):
        read(encoded({**SAID, **more, "type": "azure.scheduledevents.scheduled.v1"}), ())


def test_an_approval_without_a_specversion_is_not_read_as_plain_json():
    assert "no valid specversion" in refusal({**SAID, "type": APPROVE})
    assert "no valid specversion" in refusal(SAID, [("type", APPROVE.encode())])


def test_json_in_data_base64_is_json():
    data = base64.b64encode(encoded(SAID)).decode()
    assert one({**BARE, "data_base64": data}, STRUCTURED) == one(ENVELOPE, STRUCTURED)


# --- what it calls itself ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers", "found"),
    [
        (b"\xff", BINARY, "a-1"),
        ({**ENVELOPE, "data": 7}, STRUCTURED, "a-1"),
        ({"specversion": "1.0", "id": "a-1"}, (), "a-1"),
        ({"id": "j", "decision": ""}, [("webhook-id", b"w")], "j"),
        (b"{", [("webhook-id", b"w")], "w"),
        (b"x" * (LARGEST + 1), BINARY, "a-1"),
        ({"id": "a\nb"}, [("ce_id", b"\xff")], None),
        ([], (), None),
    ],
    ids=range(8),
)
def test_what_cannot_be_read_may_still_say_its_id(body, headers, found):
    assert claimed(encoded(body), headers) == found


def test_other_headers_are_ignored():
    others = [("traceparent", b"\xff"), ("traceparent", b"\xff"), ("x-ce_id", b"1")]
    assert one(SAID, [*BINARY, *others]).id == "a-1"


WRONG: list[tuple[Any, Sequence[tuple[str, bytes]], str]] = [
    (b"", (), "not JSON"),
    (b"\xff", (), "not JSON"),
    (b"[" * 60000, (), "nested too deeply"),
    (b'{"eventId": "a", "eventId": "b"}', (), "occurs twice"),
    (b'{"eventId": NaN}', (), "not JSON"),
    ([], (), "not a JSON object"),
    ("text", (), "not a JSON object"),
    (None, (), "not a JSON object"),
    ({}, (), "no eventId"),
    ({"EventId": "a"}, (), "did you mean eventId"),
    ({"eventId": ""}, (), "no eventId"),
    ({"eventId": 7}, (), "eventId must be text"),
    ({"eventId": "a\nb"}, (), "eventId must be text"),
    ({"eventId": "a" * 513}, (), "eventId must be text"),
    ({**SAID, "decision": "Approve"}, (), "decision must be one of approve, hold, release"),
    ({**SAID, "decision": True}, (), "decision must be text"),
    (
        {"eventId": "a", "decison": "hold"},
        (),
        "the field 'decison' is unknown; did you mean decision?",
    ),
    (
        {"eventId": "a", "Decision": "hold"},
        (),
        "the field 'Decision' is unknown; did you mean decision?",
    ),
    ({"StartRequests": [{"EventId": "a", "decision": "hold"}]}, (), "beside StartRequests"),
    ({"StartRequests": [{"EventId": "a", "Decision": "hold"}]}, (), "beside StartRequests"),
    ({"StartRequests": [{"EventId": "a", "Resource": "vm-0"}]}, (), "beside StartRequests"),
    (
        {"StartRequests": [{"EventId": "a"}, {"EventId": "b", "note": 1}]},
        (),
        "beside StartRequests",
    ),
    ({**SAID, "decision": ""}, (), "decision is empty"),
    ({**SAID, "resource": ""}, (), "resource is empty"),
    ({**SAID, "seen": ""}, (), "seen is empty"),
    ({**SAID, "approver": ""}, (), "approver is empty"),
    ({**SAID, "approver": "\u0085"}, (), "approver must be text"),
    ({"StartRequests": []}, (), "1 to 100"),
    ({"StartRequests": [{"EventId": "a"}] * (MOST_EVENTS + 1)}, (), "1 to 100"),
    ({"StartRequests": ["a"]}, (), "objects with an EventId"),
    ({"StartRequests": [{}]}, (), "no eventId"),
    ({"StartRequests": {"EventId": "a"}}, (), "1 to 100"),
    ({"eventId": "b", "StartRequests": [{"EventId": "a"}]}, (), "both"),
    ([ENVELOPE], [("content-type", b"application/cloudevents-batch+json")], "must be JSON"),
    (ENVELOPE, [("content-type", b"application/cloudevents+avro")], "must be JSON"),
    ([ENVELOPE], STRUCTURED, "must be a JSON object"),
    ({**ENVELOPE, "data": None}, STRUCTURED, "not a JSON object"),
    ({**ENVELOPE, "data": json.dumps(SAID)}, STRUCTURED, "not a JSON object"),
    ({**ENVELOPE, "data_base64": "e30="}, STRUCTURED, "both data and data_base64"),
    ({**BARE, "data_base64": "e30"}, STRUCTURED, "data_base64 is not base64"),
    ({**BARE, "data_base64": 7}, STRUCTURED, "data_base64 is not base64"),
    ({**BARE, "data_base64": "/w=="}, STRUCTURED, "not JSON"),
    ({**ENVELOPE, "data": ENVELOPE}, STRUCTURED, "data is a CloudEvent"),
    (ENVELOPE, BINARY, "data is a CloudEvent"),
    ({**ENVELOPE, "decision": "hold"}, STRUCTURED, "did you mean decision"),
    ({**ENVELOPE, "verdict": "hold"}, STRUCTURED, "'verdict' is unknown"),
    (SAID, [*BINARY, ("ce_decision", b"hold")], "did you mean decision"),
    ({**ENVELOPE, "datacontenttype": "text/xml"}, STRUCTURED, "must be JSON"),
    ({**ENVELOPE, "specversion": "0.3"}, STRUCTURED, "specversion must be 1.0"),
    ({**ENVELOPE, "type": "com.example.approve"}, STRUCTURED, f"type must be {APPROVE}"),
    (SAID, [*BINARY, ("content-type", b"text/xml")], "must be JSON"),
    (SAID, [*BINARY[1:], ("ce_specversion", b"\xff")], "is not UTF-8"),
]


@pytest.mark.parametrize(("body", "headers", "said"), WRONG, ids=range(len(WRONG)))
def test_errors_are_explained_in_a_sentence(body, headers, said):
    assert said in refusal(body, headers)


def test_the_size_is_checked_first():
    assert "at most 65536 are read" in refusal(b"{" + b" " * LARGEST)
    padded = encoded(SAID) + b" " * (LARGEST - len(encoded(SAID)))
    assert one(padded).approver == "orders"


@pytest.mark.parametrize("kind", ["scheduled.v1", "approval.granted.v1", "approve.v2"])
def test_our_other_cloudevents_are_not_for_us_even_if_malformed(kind):
    name = f"azure.scheduledevents.{kind}"
    with pytest.raises(NotForUs, match=name):
        read(encoded({"specversion": "1.0", "type": name}), STRUCTURED)
    with pytest.raises(NotForUs, match=f"its type is {name}"):
        read(b"\xff", [("ce_type", name.encode())])


# --- any input -----------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*ENVELOPE, *SAID, "StartRequests"]) | st.text(), inner)
    ),
    max_leaves=12,
)
NAMES = (
    st.sampled_from([name for name, _ in (*BINARY, *UNPREFIXED)] + ["content-type", "webhook-id"])
    | st.sampled_from(SPELLINGS)
    | st.text()
)
VALUES = st.sampled_from([value for _, value in (*BINARY, *STRUCTURED)]) | st.binary(max_size=40)


@pytest.mark.fuzz
@given(
    body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=6),
    position=st.none() | st.text(min_size=1),
)
@example(encoded({**ENVELOPE, "data": {"eventId": "\ud800"}}), [], None)
def test_nothing_but_the_two_refusals_is_ever_raised(body, headers, position):
    try:
        found = read(body, headers, position)
    except (MalformedApproval, NotForUs) as error:
        str(error).encode("utf-8", "backslashreplace")
        return
    for approval in found:
        assert approval.event_id
        assert approval.key
        for text in (approval.event_id, approval.approver, approval.resource, approval.reason):
            (text or "").encode()


@st.composite
def near_approvals(draw):
    """A message that is a readable approval but for a few changes, in any mode."""
    data = {**SAID, "decision": draw(st.sampled_from(["approve", "hold", "release", "", None]))}
    data |= draw(st.dictionaries(st.sampled_from(SPELLINGS), st.just("1.0"), max_size=1))
    data |= draw(st.dictionaries(st.sampled_from(["action", "type", "Resource", "id", "x"]), JSON))
    pick = draw(st.sampled_from(["plain", "structured", "binary", "unprefixed", "mixed"]))
    headers = {"binary": BINARY, "unprefixed": UNPREFIXED, "mixed": [*UNPREFIXED[:2], *BINARY[2:]]}
    chosen = draw(st.lists(st.sampled_from(headers.get(pick, BINARY)), max_size=6))
    full = headers.get(pick, []) if draw(st.booleans()) else chosen
    extra = draw(st.lists(st.tuples(NAMES, VALUES), max_size=1))
    body = {**BARE, "data": data} if pick == "structured" else data
    return encoded(body), [*full, *extra]


@pytest.mark.fuzz
@given(near_approvals())
def test_what_has_a_sign_of_a_cloudevent_is_counted_under_its_own_id(message):
    body, headers = message
    top = json.loads(body)
    try:
        found = read(body, headers)
    except (MalformedApproval, NotForUs):
        return
    kinds = [value.lower() for name, value in headers if name.lower() == "content-type"]
    signs = any(marks_cloudevent(name) for name in [*top, *(name for name, _ in headers)])
    is_cloudevent = signs or any(b"cloudevents" in kind for kind in kinds)
    for approval in found:
        source, _, number = approval.key.partition("\x1f")
        assert bool(source and number and not number.startswith("\x1f")) is is_cloudevent
        said = top.get("data", top)
        assert approval.decision == (said.get("decision") or "approve")
        assert approval.resource == "vm-0"
