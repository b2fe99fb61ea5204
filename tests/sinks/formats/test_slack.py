import json
import re

import pytest
from hypothesis import given, settings
from support.chat_rules import ILL_MEANT, check_slack, ill_meant, told_of
from support.world import published

from bridge.plugins import read_format
from bridge.plugins.formats import find_format
from sinks.formats.slack import escape

PLUGIN = find_format("slack")
SLACK = PLUGIN.open(read_format("slack"))


def said(cloudevent) -> dict:
    return json.loads(SLACK.encode(cloudevent))


def words(message: dict) -> str:
    [sentence] = [
        block["text"]["text"]
        for block in message["blocks"]
        if block.get("text", {}).get("type") == "plain_text" and block["type"] == "section"
    ]
    return sentence


@pytest.mark.parametrize("cloudevent", published().values(), ids=list(published()))
def test_every_type_is_a_message_that_slack_takes(cloudevent):
    check_slack(said(cloudevent))
    assert len(SLACK.encode(cloudevent)) < 16_384


@pytest.mark.fuzz
@settings(max_examples=25)
@given(ill_meant())
def test_foreign_text_never_pings_links_or_is_too_long(cloudevent):
    body = SLACK.encode(cloudevent)
    check_slack(json.loads(body))
    assert len(body) < 65_536


@pytest.mark.parametrize("text", ILL_MEANT[:6])
def test_ill_meant_text_is_shown_and_does_nothing(text):
    message = said(told_of("scheduled", description=text))
    check_slack(message)
    shown = words(message).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert " ".join(text.split()) in shown.replace("\u200b", "")


def test_it_says_what_happens_to_whom_when_and_what_to_do():
    message = said(told_of("scheduled"))
    assert message["blocks"][0]["text"]["text"] == (
        "\N{LARGE ORANGE CIRCLE} In 14 min: Reboot of FrontEnd_IN_0 and BackEnd_IN_0"
    )
    assert words(message) == (
        "Azure will reboot FrontEnd_IN_0 and BackEnd_IN_0, not before 2026-11-15 12:15:00 UTC "
        "(in 14 min) unless it is approved earlier. Azure says: "
        '"Virtual machine is being restarted as requested by authorized user."'
    )
    assert message["blocks"][2]["text"]["text"] == (
        "When ready: `seb approve 602D9444-D2CD-49C7-8624-8643E7171297`"
    )
    fields = [field["text"].split("\n") for field in message["blocks"][3]["fields"]]
    assert dict(fields)["Approve by"] == "2026-11-15 12:14:55 UTC (in 14 min)"
    assert message["text"].startswith("\N{LARGE ORANGE CIRCLE} In 14 min: Reboot of")


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        ("updated", {}, "What changed: notBefore."),
        ("scheduled", {"notBefore": None}, "and does not say when"),
        ("scheduled", {"notBefore": "0001-01-01T00:00:00Z"}, "and does not say when"),
        ("scheduled", {"notBefore": "2026-11-15T12:00:00Z"}, "12:00:00 UTC (60 s ago)"),
        ("scheduled", {"notBefore": "2026-11-15T15:21:00Z"}, "(in 3 h 20 min)"),
        ("scheduled", {"notBefore": "2026-11-15T15:01:00Z"}, "(in 3 h)"),
        ("scheduled", {"notBefore": "2026-11-20T15:01:00Z"}, "(in 5 days)"),
        ("scheduled", {"eventType": "Defragment"}, "carry out Defragment on FrontEnd_IN_0"),
        ("scheduled", {"eventType": "preempt"}, "evicted from Spot capacity"),
        ("scheduled", {"resources": list("abcdefg"), "resourcesTruncated": 9}, "a, b, c, d and 12 more"),
        ("scheduled", {"resources": []}, "reboot no VM by name"),
        ("scheduled", {"drill": True}, "This is a drill, of which Azure knows nothing."),
        ("started", {"previousStatus": None}, "It was not announced before."),
        ("started", {"terminal": True}, "Expect nothing more from the affected VMs."),
        ("completed", {"inferred": True}, "The bridge did not see it end"),
        ("canceled", {}, "it did not happen"),
        ("approval.recorded", {}, "The approval by orders-service counts for the Reboot of"),
        ("approval.recorded", {}, "Still missing: BackEnd_IN_0."),
        ("approval.recorded", {"votes": {"missing": ["any"]}}, " Nobody has approved yet."),
        ("approval.recorded", {"dryRun": True}, "Dry run: "),
        ("approval.recorded", {"votes": {"holds": ["a"]}}, "Held by a; Azure does not wait"),
        ("approval.granted", {}, "it can start at any moment. The last vote came from billing."),
        ("approval.refused", {}, "does not count: resource-required: the event has several VMs"),
        ("approval.refused", {"eventType": None, "detail": None}, "for the scheduled event 602D9444"),
        ("approval.failed", {}, "could not tell Azure in time: Azure had not confirmed"),
        ("approval.due", {}, "waits for BackEnd_IN_0. Azure goes ahead at 2026-11-15 12:15:00 UTC"),
        ("approval.due", {"votes": {"missing": ["any"]}}, "still waits for an approval. Azure goes"),
        ("approval.due", {"votes": {"holds": ["a"]}}, "still waits for a release by a. Azure goes"),
        ("approval.due", {"votes": {"missing": ["b"], "holds": ["a"]}}, "waits for b and a release by a."),
        ("source.degraded", {}, "since 2026-11-15 11:45:00 UTC (server-error, HTTP 503)"),
        ("source.recovered", {}, "The metadata service answers FrontEnd_IN_0 again."),
        ("source.snapshot", {"pendingTruncated": 2}, "pending on FrontEnd_IN_0: 3"),
        ("bridge.audited", {}, "ops, via control: dead-letter.dropped."),
    ],
)  # fmt: skip
def test_each_kind_of_news_has_its_sentence(kind, data, sentence):
    assert sentence in words(said(told_of(kind, **data)))


@pytest.mark.parametrize(
    ("kind", "light"),
    [("completed", "GREEN"), ("scheduled", "ORANGE"), ("approval.failed", "RED")],
)
def test_the_light_tells_how_bad_it_is(kind, light):
    lights = {"GREEN": "\N{LARGE GREEN CIRCLE}", "ORANGE": "\N{LARGE ORANGE CIRCLE}"}
    lights |= {"RED": "\N{LARGE RED CIRCLE}"}
    assert said(told_of(kind))["text"].startswith(lights[light])


@pytest.mark.parametrize("event_id", ["$(reboot)", "a b", "`x`", "a\nb", "x" * 200, ""])
def test_no_command_is_offered_that_would_not_be_safe_to_paste(event_id):
    message = said(told_of("scheduled", eventId=event_id))
    assert "seb approve" not in json.dumps(message)


def test_what_is_settled_needs_no_command():
    for kind in ("started", "completed", "approval.granted"):
        assert "seb approve" not in json.dumps(said(told_of(kind)))
    assert "seb approve" in json.dumps(said(told_of("approval.due")))


def test_an_entity_is_never_cut_in_two():
    for most in range(2, 40):
        cut = escape("a<b>&" * 20, most)
        assert len(cut) <= most
        assert not re.search(r"&(?!amp;|lt;|gt;)", cut), cut
    assert escape("a<b", 6) == "a&lt;b"


def test_old_news_and_housekeeping_stay_out_of_the_channel():
    assert PLUGIN.stale == "skip"
    unwanted = {kind for kind, each in published().items() if not SLACK.wants(each)}
    assert unwanted == {
        "azure.scheduledevents.source.snapshot.v1",
        "azure.scheduledevents.bridge.audited.v1",
    }
    assert SLACK.content_type == "application/json"
