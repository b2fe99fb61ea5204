import json
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.model import (
    Document,
    Instance,
    MalformedDocument,
    ScheduledEvent,
    parse_document,
    parse_instance,
    parse_time,
)

EVENT = {
    "EventId": "602d9444-D2CD-49c7-8624-8643e7171297",
    "EventType": "Reboot",
    "EventStatus": "Scheduled",
    "ResourceType": "VirtualMachine",
    "Resources": ["FrontEnd_IN_0", "BackEnd_IN_0"],
    "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
    "Description": "Host server is undergoing maintenance.",
    "EventSource": "Platform",
    "DurationInSeconds": 5,
}
VERSIONS = ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-08-01", "2020-07-01"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.text(min_size=1)
LATER_FIELDS = ["Description", "EventSource", "DurationInSeconds", "ResourceType", "NotBefore"]


def document(*events: object, version: str = "2020-07-01", **more: object) -> Document:
    return parse_document(
        {"DocumentIncarnation": 1, "Events": [*events], **more}, api_version=version
    )


def only(*, version: str = "2020-07-01", **changes: object) -> ScheduledEvent:
    (event,) = document({**EVENT, **changes}, version=version).events
    return event


def test_every_field_of_a_scheduled_event_is_read():
    assert only() == ScheduledEvent(
        event_id="602d9444-D2CD-49c7-8624-8643e7171297",
        event_type="Reboot",
        status="Scheduled",
        resources=("FrontEnd_IN_0", "BackEnd_IN_0"),
        not_before=datetime(2016, 9, 19, 18, 29, 47, tzinfo=UTC),
        resource_type="VirtualMachine",
        description="Host server is undergoing maintenance.",
        event_source="Platform",
        duration=5,
    )


def test_the_key_is_upper_case_and_azures_spelling_stays():
    event = only()
    assert event.key == "602D9444-D2CD-49C7-8624-8643E7171297"
    assert event.event_id == EVENT["EventId"]


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_that_a_version_lacks_are_none(version):
    lean = {name: EVENT[name] for name in ("EventId", "EventType", "EventStatus")}
    (event,) = document(lean, version=version).events
    assert event.resources == ()
    assert (event.description, event.event_source, event.duration) == (None, None, None)
    assert (event.not_before, event.resource_type) == (None, None)


def test_the_first_version_loses_one_underscore_before_each_name_and_no_other_version_does():
    names = ["_web", "db", "__odd", "a_b"]
    assert only(version="2017-03-01", Resources=names).resources == ("web", "db", "_odd", "a_b")
    assert only(version="2017-08-01", Resources=names).resources == tuple(names)


def test_unknown_types_statuses_and_fields_pass_through():
    event = only(EventType="Teleport", EventStatus="Pondering", Mood={"calm": True})
    assert (event.event_type, event.status) == ("Teleport", "Pondering")
    assert event.extra == {"Mood": {"calm": True}}


def test_the_not_before_of_a_started_event_is_empty_and_so_absent():
    assert only(EventStatus="Started", NotBefore="").not_before is None


def test_an_event_listed_twice_in_any_case_counts_once():
    twice = document(EVENT, {**EVENT, "EventId": str(EVENT["EventId"]).upper()})
    assert len(twice.events) == 1


def test_the_case_of_vm_names_does_not_matter():
    event = only(Resources=["FrontEnd_IN_0"])
    assert event.names("frontend_in_0")
    assert not event.names("frontend_in_1")


@pytest.mark.parametrize("incarnation", [0, 7, "7", None], ids=["0", "number", "text", "none"])
def test_the_incarnation_is_kept_as_it_came(incarnation):
    assert document(DocumentIncarnation=incarnation).incarnation == incarnation


@pytest.mark.parametrize("duration", [0, -1, 9, 1.5, "30"])
def test_a_duration_is_a_number_or_a_number_as_text(duration):
    assert only(DurationInSeconds=duration).duration == float(duration)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "text",
        {},
        {"Events": None},
        {"Events": {}},
        {"Events": [], "DocumentIncarnation": True},
        {"Events": [], "DocumentIncarnation": 1.5},
        {"Events": [], "DocumentIncarnation": []},
        {"Events": [None]},
        {"Events": [[]]},
        {"Events": [{}]},
        *({"Events": [{**EVENT, name: ""}]} for name in ("EventId", "EventType", "EventStatus")),
        *({"Events": [{**EVENT, name: 5}]} for name in EVENT if name != "DurationInSeconds"),
        {"Events": [{**EVENT, "Resources": "web"}]},
        {"Events": [{**EVENT, "Resources": [5]}]},
        {"Events": [{**EVENT, "NotBefore": "soon"}]},
        {"Events": [{**EVENT, "DurationInSeconds": "long"}]},
        {"Events": [{**EVENT, "DurationInSeconds": True}]},
    ],
    ids=json.dumps,
)
def test_an_unexpected_form_is_malformed(payload):
    with pytest.raises(MalformedDocument, match=r"\w"):
        parse_document(payload, api_version="2020-07-01")


@pytest.mark.fuzz
@given(JSON)
def test_any_json_is_a_document_or_malformed(payload):
    try:
        assert isinstance(parse_document(payload, api_version="2020-07-01"), Document)
    except MalformedDocument:
        return


@pytest.mark.fuzz
@given(st.dictionaries(st.sampled_from(sorted(EVENT)), JSON), st.sampled_from(VERSIONS))
def test_any_change_of_any_field_is_a_document_or_malformed(changes, version):
    try:
        assert isinstance(only(version=version, **changes), ScheduledEvent)
    except MalformedDocument:
        return


@given(st.permutations(sorted(EVENT)), st.sets(st.sampled_from(LATER_FIELDS)))
def test_the_order_of_fields_means_nothing(names, missing):
    lean = {name: value for name, value in EVENT.items() if name not in missing}
    shuffled = {name: lean[name] for name in names if name in lean}
    assert document(shuffled) == document(lean)


@given(
    st.lists(st.fixed_dictionaries({"EventId": WORDS, "EventType": WORDS, "EventStatus": WORDS}))
)
def test_what_is_read_can_be_stored_and_keys_are_unique(events):
    read = document(*events)
    assert len({event.key for event in read.events}) == len(read.events)
    assert {event.key for event in read.events} == {event["EventId"].upper() for event in events}


@given(st.dictionaries(st.text(), JSON))
def test_what_passes_through_can_be_written_as_strict_json(extra):
    event = only(**{f"X{name}": value for name, value in extra.items()})
    assert json.dumps(event.extra, allow_nan=False, ensure_ascii=False).encode()


def test_half_a_surrogate_pair_is_replaced_everywhere():
    event = only(Description="a\ud800b", Mood={"\udfff": ["\ud800"]})
    assert event.description == "a\ufffdb"
    assert event.extra == {"Mood": {"\ufffd": ["\ufffd"]}}


OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
MOMENTS = st.datetimes(datetime(1970, 1, 3), datetime(9998, 1, 1), timezones=OFFSETS)


@given(MOMENTS)
def test_both_ways_to_write_a_time_mean_the_same_moment_in_utc(moment):
    moment = moment.replace(microsecond=0)
    for text in (moment.isoformat(), format_datetime(moment)):
        read = parse_time(text)
        assert read == moment
        assert read.tzinfo is UTC


@given(MOMENTS, st.sampled_from(["Mon", "Tue", "Sunday", "Xyz"]))
def test_the_weekday_is_ignored(moment, weekday):
    moment = moment.astimezone(UTC).replace(microsecond=0)
    _, _, rest = format_datetime(moment, usegmt=True).partition(", ")
    assert parse_time(f"{weekday}, {rest}") == moment


@pytest.mark.fuzz
@given(st.text())
def test_any_text_is_a_time_nothing_or_malformed(text):
    try:
        read = parse_time(text)
    except MalformedDocument:
        return
    assert (read is None) == (not text.strip())


@pytest.mark.parametrize("text", [None, "", "  \t"], ids=["none", "empty", "blank"])
def test_an_empty_text_is_no_time(text):
    assert parse_time(text) is None


def test_a_time_without_a_zone_is_in_utc():
    assert parse_time(" 2026-11-15T18:29:47 ") == datetime(2026, 11, 15, 18, 29, 47, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-10:00",
        "Fri, 31 Dec 9999 23:59:59 -0100",
        "Mon, 01 Jan 2020 00:00:00 +99999999999999",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
    ],
)
def test_a_time_beyond_the_calendar_is_malformed(text):
    with pytest.raises(MalformedDocument):
        parse_time(text)


COMPUTE = {
    "name": "web_0",
    "vmId": "02aab8a4-74ef-476e-8182-f6d2ba4166a6",
    "subscriptionId": "8d10da13-8125-4ba9-a717-bf7490507b3d",
    "resourceGroupName": "macikgo-test",
    "resourceId": "/subscriptions/8d10/resourceGroups/macikgo-test/providers/x/web_0",
    "location": "westeurope",
    "zone": "1",
    "vmScaleSetName": "web",
    "osProfile": {"computerName": "web000000"},
    "tagsList": [{"name": "team", "value": "orders; and more"}],
    "tags": "team:other",
}


def test_every_field_of_the_vm_is_read():
    assert parse_instance({"compute": COMPUTE}) == Instance(
        name="web_0",
        vm_id="02aab8a4-74ef-476e-8182-f6d2ba4166a6",
        subscription="8d10da13-8125-4ba9-a717-bf7490507b3d",
        resource_group="macikgo-test",
        resource_id="/subscriptions/8d10/resourceGroups/macikgo-test/providers/x/web_0",
        location="westeurope",
        zone="1",
        scale_set="web",
        hostname="web000000",
        tags={"team": "orders; and more"},
    )


def test_missing_fields_of_the_vm_are_none():
    assert parse_instance({"compute": {"name": "", "zone": 5, "osProfile": []}}) == Instance()


def test_tags_as_one_text_are_read_when_there_is_no_list():
    compute = {"tags": "team:orders;url:http://x;lonely;"}
    assert parse_instance({"compute": compute}).tags == {"team": "orders", "url": "http://x"}


@pytest.mark.fuzz
@given(JSON)
def test_any_json_is_a_vm_or_malformed(payload):
    for shape in (
        payload,
        {"compute": payload},
        {"compute": {"tagsList": payload, "tags": payload}},
    ):
        try:
            assert isinstance(parse_instance(shape), Instance)
        except MalformedDocument:
            continue
