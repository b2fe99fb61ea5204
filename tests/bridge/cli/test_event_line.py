"""One CloudEvent as one line."""

import json
from datetime import timedelta

import pytest
from support.world import ME, NOON, OTHER, published

from bridge.cli.event_line import EventText, is_own

TOLD = [json.loads(one.body) for one in published().values()]


@pytest.mark.parametrize("cloudevent", TOLD, ids=lambda one: one["type"].split(".", 2)[2])
def test_every_cloudevent_is_one_aligned_line(cloudevent):
    line = EventText(cloudevent).line(NOON)
    assert line.count("\n") == 1
    assert line[:-1].isprintable()
    assert line[11:].startswith(cloudevent["type"][len("azure.scheduledevents.") : -len(".v1")])
    if (event_id := cloudevent["data"].get("eventId")) is not None:
        assert line[41:].startswith(event_id)
    assert is_own(cloudevent) is ("eventId" in cloudevent["data"])


def test_the_line_says_what_matters():
    told = {one["type"].split(".", 2)[2][:-3]: EventText(one).line(NOON) for one in TOLD}
    assert "FrontEnd_IN_0, BackEnd_IN_0; not before 12:15:00Z (in 15m)" in told["scheduled"]
    assert "changed: notBefore" in told["updated"]
    assert "no longer announced" in told["canceled"]
    assert "approve by orders-service; for FrontEnd_IN_0; drained" in told["approval.recorded"]
    assert "missing: BackEnd_IN_0" in told["approval.recorded"]
    assert "server-error" in told["source.degraded"]
    assert "1 pending" in told["source.snapshot"]
    assert "dead-letter.dropped; ops" in told["bridge.audited"]


def test_a_line_names_who_is_missing_who_holds_and_a_dry_run():
    told = {one["type"].split(".", 2)[2][:-3]: one for one in TOLD}
    assert EventText(told["approval.due"]).line(NOON).count("missing: ") == 1
    recorded = told["approval.recorded"]
    votes = {"have": [ME], "missing": [], "holds": [f"billing@{OTHER}"]}
    held = {**recorded, "data": {**recorded["data"], "votes": votes, "dryRun": True}}
    assert EventText(held).line(NOON).endswith(f"held by: billing@{OTHER}; dry run\n")
    none = {**recorded, "data": {**recorded["data"], "votes": {**votes, "missing": ["any"]}}}
    assert "; nobody has approved; held by: " in EventText(none).line(NOON)


def test_another_day_has_its_date():
    [one] = [one for one in TOLD if one["type"].endswith("due.v1")]
    assert EventText(one).line(NOON + timedelta(days=1)).startswith("2026-11-15 12:10:00Z  ")


def test_colors_are_for_terminals_and_go_by_severity():
    painted = {one["type"].split(".", 2)[2][:-3]: EventText(one).line(NOON, color=True)
               for one in TOLD}  # fmt: skip
    assert painted["source.degraded"].startswith("\x1b[31m")
    assert painted["approval.due"].startswith("\x1b[33m")
    assert painted["approval.granted"].startswith("\x1b[32m")
    assert painted["approval.due"].endswith("\x1b[0m\n")
    assert "\x1b" not in painted["source.snapshot"]


def test_text_from_azure_cannot_control_the_terminal():
    evil = {**TOLD[0], "data": {**TOLD[0]["data"], "description": "\x1b[2J\u202eevil"}}
    assert EventText(evil).line(NOON)[:-1].isprintable()


def test_a_stray_is_marked_as_one():
    [refused] = [one for one in TOLD if one["type"].endswith("approval.refused.v1")]
    assert "STRAY" not in EventText(refused).remark(NOON)
    assert EventText({**refused, "stray": True}).remark(NOON).startswith("STRAY; ")
