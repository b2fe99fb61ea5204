"""One screen about the bridge, from what the API says."""

import copy
import re
from typing import Any

import pytest
from support.world import NOON

from bridge.cli.status_text import told
from bridge.runtime.runbook import Topic, link

NOW = NOON.isoformat().replace("+00:00", "Z")
SINK = {
    "name": "bus", "type": "kafka", "required": True, "state": "connected", "since": NOW,
    "waiting": 0, "oldest": None, "delivered": 5, "dead": 0, "error": None,
}  # fmt: skip
SOURCE = {
    "name": "floor", "type": "mqtt", "state": "connected", "error": None, "received": 3,
    "heardSecondsAgo": 2.0, "lag": None, "silent": False,
}  # fmt: skip
GOOD: dict[str, Any] = {
    "version": "1.2.3",
    "startedAt": "2026-11-15T11:00:00Z",
    "now": NOW,
    "vm": {"name": "vm-0", "location": "westeurope", "zone": "1", "scaleSet": None},
    "readiness": {"ready": True, "reasons": [], "notes": []},
    "source": {
        "endpoint": "http://127.0.0.1:8081", "state": "good", "lastGoodAgeSeconds": 0.4,
        "problem": None, "detail": None, "clockSkewSeconds": -0.24, "clockSkewed": False,
        "pollIntervalSeconds": 1.0, "scope": "own",
    },
    "journal": {
        "path": "/x/journal.db", "writable": True, "trouble": None, "bytes": 144 * 1024,
        "maxBytes": 256 * 1024**2, "lost": 0,
    },
    "sinks": [SINK],
    "approvalSources": [],
    "approvals": {"require": "each-resource", "dryRun": False},
    "drill": None,
    "configuration": {
        "file": "/etc/seb.yaml", "loadedAt": "2026-11-15T11:50:00Z", "differs": False,
        "fileError": None, "reload": None, "reloadsFailed": 0,
    },
}  # fmt: skip
EVENT = {
    "eventId": "602D9444-D2CD-49C7-8624-8643E7171297", "eventType": "Reboot", "drill": True,
    "status": "Scheduled", "notBefore": "2026-11-15T12:12:03Z", "affected": True,
    "resources": ["vm-0", "vm-1"],
    "approvals": {
        "require": "each-resource", "dryRun": False, "satisfied": False, "have": ["vm-0"],
        "missing": ["vm-1"], "holds": [], "grant": None,
    },
}  # fmt: skip


def remark(what: str, why: str, topic: Topic) -> dict[str, str]:
    return {"what": what, "why": why, "runbook": link(topic)}


def screen(events=(), width=80, **changes):
    status = copy.deepcopy(GOOD)
    for name, value in changes.items():
        status[name] = {**status[name], **value} if isinstance(value, dict) else value
    return re.sub(r"\x1b\[[0-9;]*m", "", told(status, events, width))


def test_a_healthy_bridge_fits_one_screen():
    text = screen([EVENT], approvalSources=[SOURCE])
    lines = text.splitlines()
    assert lines[0] == "The bridge on vm-0 (westeurope, zone 1) is ready."
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for said in (
        "bridge   version 1.2.3, running for 1h",
        "source   good, answered 0s ago; http://127.0.0.1:8081 every 1s, scope own",
        "clock    0.2s behind Azure's",
        "journal  writable; 144 KiB of 256 MiB; /x/journal.db",
        "config   /etc/seb.yaml; loaded 10m ago; the same as the file",
        "602D9444  Reboot  Scheduled (drill)  12m 03s    1 of 2     yes      vm-0 +1",
    ):
        assert said in lines
    assert "What to do" not in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": {"state": "failing", "problem": "timeout", "detail": "no answer."}},
         "failing (timeout: no answer), answered 0s ago"),
        ({"source": {"state": "waiting", "lastGoodAgeSeconds": None, "endpoint": None}},
         "waiting, no answer yet; endpoint not found"),
        ({"source": {"clockSkewSeconds": 93.0, "clockSkewed": True}},
         "93.0s ahead of Azure's; check how its time is synchronized"),
        ({"journal": {"writable": False, "trouble": "the disk is full"}},
         "CANNOT BE WRITTEN (the disk is full)"),
        ({"configuration": {"differs": True}}, "THE FILE DIFFERS: seb check, then seb reload"),
        ({"configuration": {"differs": None, "fileError": "seb.yaml:3: unknown key"}},
         "seb.yaml:3: unknown key"),
        ({"configuration": {"reload": {"outcome": "rejected", "at": NOW}}},
         "the reload 0s ago was rejected"),
        ({"approvals": {"dryRun": True}}, "DRY RUN: Azure is never told"),
        ({"readiness": {"notes": [remark("scope", "the name is not known", "vm-name")]}},
         "scope    the name is not known"),
        ({"readiness": {"notes": [remark("journal", "a journal was set aside", "journal-set-aside")]}},
         "/x/journal.db; a journal was set aside"),
        ({"source": {"state": "failing", "problem": "timeout"}},
         "is ready, but the metadata service does not answer.\n"),
    ],
)  # fmt: skip
def test_what_is_unusual_is_said_where_it_belongs(changes, said):
    assert said in screen(width=None, **changes)


def test_a_bridge_that_is_not_ready_says_why_and_where_the_runbook_helps():
    stopped = {**SINK, "state": "stopped", "dead": 2}
    why = "stopped: gone; then run: seb sinks --resume bus"
    reasons = [remark("sink bus", why, "sink-stopped")]
    notes = [
        remark("approvals floor", "no route", "approval-source"),
        remark("sink a", "untried: x", "sink-untried"),
    ]
    text = screen(
        sinks=[stopped],
        approvalSources=[{**SOURCE, "state": "unavailable", "heardSecondsAgo": None}],
        readiness={"ready": False, "reasons": reasons, "notes": notes},
    )
    assert text.startswith("The bridge on vm-0 (westeurope, zone 1) is NOT READY: sink bus.\n")
    assert "    stopped: gone; then run: seb sinks --resume bus\n" in text
    assert "    no route\n" in text
    sections = ", ".join(link(one) for one in ("sink-stopped", "approval-source", "dead-letters"))
    assert " ".join(text.split()).endswith(f"What to do: {sections}")


@pytest.mark.parametrize(
    ("changes", "topic"),
    [
        ({"source": {"state": "failing", "problem": "timeout"}}, "source"),
        ({"readiness": {"notes": [remark("clock", "93s ahead", "clock")]}}, "clock"),
        ({"readiness": {"notes": [remark("journal", "set aside", "journal-set-aside")]}},
         "journal-set-aside"),
    ],
)  # fmt: skip
def test_the_last_line_names_the_section_of_the_runbook_to_copy(changes, topic):
    assert screen(**changes).endswith(f"\nWhat to do: {link(topic)}\n")


def test_many_events_are_cut_to_the_most_urgent():
    events = [{**EVENT, "eventId": f"E{number}"} for number in range(9)]
    assert "and 4 more: seb events --pending\n" in screen(events)
    assert "No scheduled event is pending.\n" in screen()
