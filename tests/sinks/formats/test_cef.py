"""CEF, read back by a parser that is not ours."""

import re
import unicodedata
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from support.siem_events import bare, hostile, of_kind, refused_token
from support.siem_readers import one_line, read_cef
from support.world import EVENT_ID, published

from bridge.core.messages import KINDS
from bridge.plugins import class_id, read_format, severity
from bridge.plugins.formats import find_format

CEF = find_format("cef").open(read_format("cef"))
LIMITS = {
    "externalId": 40,
    "act": 63,
    "outcome": 63,
    "dvchost": 100,
    "deviceExternalId": 255,
    **dict.fromkeys(("resources", "eventSource", "cloudEventId", "scope", "decision"), 4000),
    **dict.fromkeys(("pending", "truncated"), 4000),
    **dict.fromkeys(("DeviceVendor", "DeviceProduct"), 63),
    "DeviceVersion": 31,
    "DeviceEventClassID": 1023,
    "Name": 512,
    "DeviceName": 512,
}


def said(cloudevent) -> dict[str, str]:
    return read_cef(CEF.encode(cloudevent))


def as_cef_can_say(text: str) -> str:
    return "".join(map(_character, text.replace("\r\n", "\n"))).strip()


def _character(one: str) -> str:
    if one != "\r" and len(f"{one}x".splitlines()) == 2:
        return "\n"
    return " " if one != "\r" and unicodedata.category(one) == "Cc" else one


def test_a_transition_has_every_field_of_the_dictionary_that_fits():
    assert said(of_kind("started")) == {
        "CEFVersion": "0",
        "DeviceVendor": "scheduled-events-bridge",
        "DeviceProduct": "Azure Scheduled Events",
        "DeviceVersion": version("scheduled-events-bridge"),
        "DeviceEventClassID": "azse.reboot.started",
        "Name": "Scheduled event started",
        "DeviceName": "Scheduled event started",
        "Severity": "7",
        "DeviceSeverity": "7",
        "rt": "1794744180000",
        "cat": "ScheduledEvent/Started",
        "dvchost": "FrontEnd_IN_0",
        "deviceExternalId": "13f56399-bd52-4150-9748-7190aae1ff21",
        "externalId": EVENT_ID,
        "cloudEventId": of_kind("started").id,
        "scope": of_kind("started").attributes["source"],
        "act": "Reboot",
        "notBefore": "1794745800000",
        "resources": "FrontEnd_IN_0,BackEnd_IN_0",
        "msg": "Virtual machine is being restarted as requested by authorized user.",
        "eventSource": "User",
        "durationInSeconds": "-1",
        "documentIncarnation": "3",
    }


def test_an_approval_says_who_voted_what_and_the_outcome():
    granted = said(of_kind("approval.granted"))
    assert (granted["suser"], granted["outcome"], granted["decision"]) == (
        "billing",
        "granted",
        "approve",
    )
    assert (granted["requestMethod"], granted["request"]) == ("POST", "/metadata/scheduledevents")
    assert (granted["dhost"], granted["via"]) == ("FrontEnd_IN_0", "orders-bus")
    refused = said(of_kind("approval.refused"))
    assert (refused["reason"], refused["outcome"]) == ("resource-required", "refused")
    assert refused["msg"].startswith("the event has several VMs")
    assert "request" not in refused


def test_the_source_and_the_bridge_have_their_words_too():
    degraded = said(of_kind("source.degraded"))
    assert (degraded["reason"], degraded["httpStatus"]) == ("server-error", "503")
    assert degraded["deviceExternalId"] == "13f56399-bd52-4150-9748-7190aae1ff21"
    assert degraded["request"] == "http://169.254.169.254"
    assert said(of_kind("source.snapshot"))["pending"] == EVENT_ID
    audited = said(of_kind("bridge.audited"))
    assert (audited["act"], audited["suser"]) == ("dead-letter.dropped", "ops")
    assert '"reason": "too large"' in audited["msg"]


def test_an_audit_says_what_was_done_by_whom_from_where_and_with_what_outcome():
    found = said(refused_token())
    assert found["DeviceEventClassID"] == "azse.audit.token.refused"
    assert (found["Name"], found["Severity"]) == ("Token refused", "7")
    assert (found["src"], found["outcome"]) == ("192.0.2.7", "failure")
    assert found["deviceExternalId"] == "13f56399-bd52-4150-9748-7190aae1ff21"
    assert said(of_kind("bridge.audited"))["outcome"] == "success"


def test_a_caller_with_an_ipv6_address_is_in_the_field_for_it():
    found = said(refused_token("2001:db8::7"))
    assert found["Source IPv6 Address"] == "2001:db8::7"
    assert "src" not in found
    assert not {"src", "c6a2"} & set(said(refused_token("a | b")))


@pytest.mark.parametrize("cloudevent", published().values(), ids=lambda each: each.type)
def test_the_header_is_that_of_its_type_and_times_are_milliseconds(cloudevent):
    found = said(cloudevent)
    assert found["DeviceEventClassID"] == class_id(cloudevent)
    assert found["Severity"] == str(severity(cloudevent).cef)
    assert re.fullmatch(r"17947\d{8}", found["rt"])
    assert found["cloudEventId"] == cloudevent.id


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_of_the_data_is_needed(kind):
    if f"azure.scheduledevents.{kind}.v1" in published():
        assert said(bare(kind))["dvchost"] == "FrontEnd_IN_0"


def test_the_end_is_a_time_only_when_it_was_watched():
    assert said(of_kind("completed", inferred=False))["end"] == "1794744240000"
    assert "end" not in said(of_kind("completed", inferred=True))


def test_another_vm_that_is_alone_affected_is_the_destination():
    assert said(of_kind("started", resources=["BackEnd_IN_0"]))["dhost"] == "BackEnd_IN_0"
    assert "dhost" not in said(of_kind("started", resources=["frontend_in_0"]))


def test_a_drill_says_so():
    assert said(of_kind("scheduled", drill=True))["drill"] == "true"
    assert "drill" not in said(of_kind("scheduled"))


def test_the_year_1_of_dot_net_is_no_time():
    assert "notBefore" not in said(of_kind("scheduled", notBefore="0001-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("seconds", "expected"), [(9.6, "10"), (0, "0"), (None, None), (1e300, None), (10**30, None)]
)
def test_a_number_is_whole_and_has_at_most_64_bits(seconds, expected):
    found = said(of_kind("scheduled", durationInSeconds=seconds))
    assert found.get("durationInSeconds") == expected


def test_escapes_are_those_of_the_standard():
    line = one_line(CEF.encode(of_kind("scheduled", description="a=b\\c|d\r\ne\rf\tg\x00h\u2028i")))
    assert r"msg=a\=b\\c|d\ne\rf g h\ni cs2=" in line


def test_long_text_is_cut_between_characters_and_said_to_be():
    found = said(of_kind("scheduled", description="\U0001f692" * 300))
    assert found["msg"] == "\U0001f692" * 255 + "…"
    assert found["truncated"] == "msg"


def test_an_escape_is_not_cut_in_half():
    for n in range(4):
        found = said(of_kind("scheduled", description="x" * n + "=\\\n" * 600))
        assert found["msg"].removesuffix("…") in "x" * n + "=\\\n" * 600


def test_a_stranger_cannot_make_a_refusal_too_large_for_syslog():
    names = ("approver", "reason", "detail", "resource", "decision", "via", "eventId", "eventType")
    long = dict.fromkeys(names, "=\\\n" * 2000)
    line = CEF.encode(of_kind("approval.refused", resources=["=" * 50] * 900, **long))
    assert len(line) <= 7 * 1024
    assert read_cef(line)["outcome"] == "refused"


def test_a_long_list_keeps_whole_names_and_counts_the_others():
    names = [f"scale-set_{n}" for n in range(1000)]
    found = said(of_kind("scheduled", resources=names, resourcesTruncated=7))
    *kept, more = found["resources"].split(",")
    assert kept == names[: len(kept)]
    assert more == f"+{1000 - len(kept) + 7}"
    assert 1980 < len(found["resources"]) <= 2000
    assert found["truncated"] == "cs1"


def test_names_that_were_gone_before_are_counted_too():
    found = said(of_kind("scheduled", resources=["a", "b"], resourcesTruncated=7))
    assert (found["resources"], found["truncated"]) == ("a,b,+7", "cs1")


@pytest.mark.fuzz
@settings(max_examples=25)
@given(hostile())
def test_any_input_comes_back_as_written_or_marked_as_cut(cloudevent):
    assert len(CEF.encode(cloudevent)) <= 7 * 1024
    found = said(cloudevent)
    data, cut = cloudevent.data, found.get("truncated", "").split(",")
    assert all(len(value.encode()) <= LIMITS.get(key, 1023) for key, value in found.items())
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", "".join(found.values()))
    pairs = [("msg", "description"), ("externalId", "eventId"), ("eventSource", "eventSource")]
    pairs += [("suser", "approver"), ("reason", "reason"), ("suser", "actor")]
    for key, name in pairs:
        whole = as_cef_can_say(data.get(name) or "")
        if name in data and key in cut:
            assert whole.startswith(found[key].removesuffix("…"))
        elif name in data:
            assert found.get(key, "") == whole
