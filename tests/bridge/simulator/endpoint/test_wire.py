import json

import pytest
from support.simulator_tools import make_world

from bridge.core.model import parse_document
from bridge.simulator.endpoint.wire import read_start_requests, write_document
from bridge.simulator.world.scenario import API_VERSIONS

ALL_TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
BASE = {"EventId", "EventType", "ResourceType", "Resources", "EventStatus", "NotBefore"}


def document_of_all_types():
    world, _ = make_world(vms=[{"name": "vm-0"}])
    for event_type in ALL_TYPES:
        world.create(type=event_type, name=event_type, duration=5)
    return world.document()


@pytest.mark.parametrize(
    ("api_version", "types", "more"),
    [
        ("2017-03-01", 3, set()),
        ("2017-08-01", 3, set()),
        ("2017-11-01", 4, set()),
        ("2019-01-01", 5, set()),
        ("2019-04-01", 5, {"Description"}),
        ("2019-08-01", 5, {"Description", "EventSource"}),
        ("2020-07-01", 5, {"Description", "EventSource", "DurationInSeconds"}),
    ],
)
def test_each_api_version_knows_its_types_and_fields(api_version, types, more):
    written = write_document(document_of_all_types(), api_version)
    assert [event["EventType"] for event in written["Events"]] == list(ALL_TYPES[:types])
    assert all(set(event) == BASE | more for event in written["Events"])


def test_only_the_first_version_puts_an_underscore_before_names():
    for version in API_VERSIONS:
        event = write_document(document_of_all_types(), version)["Events"][0]
        assert event["Resources"] == (["_vm-0"] if version == "2017-03-01" else ["vm-0"])


def test_the_newest_version_reads_back_as_it_was():
    document = document_of_all_types()
    written = json.loads(json.dumps(write_document(document, "2020-07-01")))
    assert parse_document(written, api_version="2020-07-01") == document


def test_not_before_is_rfc_1123_and_empty_once_started():
    world, _ = make_world()
    world.create(type="Reboot", name="r", notice="15m")
    assert write_document(world.document(), "2020-07-01")["Events"][0]["NotBefore"] == (
        "Mon, 16 Nov 2026 12:15:00 GMT"
    )
    world.start("r")
    assert write_document(world.document(), "2020-07-01")["Events"][0]["NotBefore"] == ""


def test_unknown_types_and_fields_can_be_sent():
    world, _ = make_world()
    world.create(type="Reboot", wire_type="Hibernate", extra={"Mood": "calm"})
    (event,) = write_document(world.document(), "2020-07-01")["Events"]
    assert (event["EventType"], event["Mood"]) == ("Hibernate", "calm")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "StartRequests"),
        (b"{}", "StartRequests"),
        (b'{"StartRequests": []}', "StartRequests"),
        (b'{"StartRequests": {"EventId": "a"}}', "StartRequests"),
        (b'{"StartRequests": ["a"]}', "EventId"),
        (b'{"StartRequests": [{"EventId": 1}]}', "EventId"),
        (b'{"StartRequests": [{"EventId": "a"}, {}]}', "EventId"),
    ],
)
def test_a_malformed_approval_is_told_apart(body, why):
    with pytest.raises(ValueError, match=why):
        read_start_requests(body)
