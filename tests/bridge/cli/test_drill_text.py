"""The report of a drill as text, and the lines printed while it runs."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.cli.drill_text import begun, news, told

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
VOTE: dict[str, Any] = {
    "approver": "orders",
    "resource": "vm-0",
    "decision": "approve",
    "via": "bus",
}
VOTE |= {"at": "2026-11-15T12:01:00Z", "secondsBeforeApproveBy": 120, "verified": True}
REFUSAL = {"approver": "billing", "resource": None, "decision": "approve", "via": "mqtt"}
REFUSAL |= {"reason": "unauthorized", "detail": "billing is not listed"}


def report(**changes):
    sink = {"sink": "bus", "required": True, "outcome": "waiting", "seconds": None, "attempts": 0}
    approvals = {"policy": "any", "votes": [], "refused": [], "missing": ["any"], "holds": []}
    usual = {
        "eventId": "D1",
        "eventType": "Reboot",
        "resources": ["vm-0", "vm-1"],
        "noticeSeconds": 900,
        "begunBy": "uid 0",
        "via": "control",
        "status": "Scheduled",
        "begunAt": "2026-11-15T12:00:00Z",
        "approveBy": "2026-11-15T12:14:00Z",
        "notBefore": "2026-11-15T12:15:00Z",
        "startedAt": None,
        "endedAt": None,
        "verdict": "The drill is still running.",
        "azure": {"wouldBeTold": False, "dryRun": False},
        "approvals": {**approvals, "silent": []},
        "sinks": [{**sink, "cloudEvents": {"waiting": 1}, "error": None}],
    }
    return deepcopy({**usual, **changes})


def test_the_first_line_says_what_is_rehearsed_and_how_to_stop_it():
    assert begun(report(), NOW) == (
        "Drill D1: Reboot of vm-0, vm-1, not before 12:15:00Z (in 15m). Ctrl-C stops it."
    )


def test_two_equal_reports_print_nothing():
    assert list(news(report(), report())) == []


def test_each_change_between_two_reports_is_a_line():
    after = report(status="Completed")
    after["approvals"] |= {"votes": [VOTE], "refused": [REFUSAL]}
    after["sinks"][0] |= {"outcome": "delivered", "seconds": 2.0}
    assert list(news(report(), after)) == [
        "orders votes approve for vm-0, via bus.",
        "billing was refused (unauthorized): billing is not listed.",
        "Sink bus: delivered after 2s.",
        "The drill is now completed.",
    ]


def test_the_verdict_is_the_last_line_and_empty_parts_are_left_out():
    lines = told(report(verdict="Failed: nobody approved.")).splitlines()
    assert lines[-1] == "Failed: nobody approved."
    assert lines[-2] == "Azure would not have been notified. Nothing was sent."
    assert "Nobody voted." in lines
    assert not [line for line in lines if line.startswith(("REFUSED", "Missing", "Held by"))]


def test_votes_and_refusals_are_tables_and_blockers_are_named():
    found = report()
    found["approvals"] |= {"votes": [VOTE], "refused": [REFUSAL], "missing": ["vm-1"]}
    found["approvals"] |= {"holds": ["billing@vm-1"], "silent": ["shipping"]}
    text = told(found)
    assert "orders    vm-0  approve  12:01:00Z  2m                 yes       bus\n" in text
    assert "billing  all  approve  unauthorized  mqtt  billing is not listed\n" in text
    assert "Missing: vm-1\nHeld by: billing@vm-1\n" in text
    assert "Listed, but did not vote: shipping\n" in text


def test_a_late_vote_says_how_late_it_was():
    found = report()
    found["approvals"]["votes"] = [{**VOTE, "secondsBeforeApproveBy": -30}]
    assert "  30s late  " in told(found)


@pytest.mark.parametrize(("early", "side"), [(60, "1m before"), (-5, "5s after")])
def test_the_report_says_when_azure_would_have_been_notified(early, side):
    azure = {"wouldBeTold": True, "at": "2026-11-15T12:13:00Z", "secondsBeforeApproveBy": early}
    assert f"notified at 12:13:00Z, {side} approveBy. Nothing was sent.\n" in told(
        report(azure=azure)
    )


def test_without_sinks_the_report_says_so():
    assert "There are no sinks.\n" in told(report(sinks=[]))


def test_what_does_not_print_is_escaped():
    assert "\x1b" not in told(report(eventId="\x1b[2J", verdict="\x1b[31m"))
