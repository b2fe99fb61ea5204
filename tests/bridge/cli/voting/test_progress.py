import pytest

from bridge.cli.voting.progress import lacking, progress


def event(status="Scheduled", **changes):
    usual = {"require": "approvers: a, b", "dryRun": False, "satisfied": False, "grant": None}
    found = {**usual, "have": ["a"], "missing": ["b"], "holds": [], **changes}
    return {"status": status, "approvals": found}


@pytest.mark.parametrize(
    ("changes", "said", "missing"),
    [
        ({}, "1 of 2", "b"),
        ({"satisfied": True, "missing": []}, "enough", None),
        ({"satisfied": True, "missing": [], "dryRun": True}, "dry run", None),
        ({"grant": "granted", "missing": []}, "granted", None),
        ({"grant": "due", "missing": []}, "Azure is told", None),
        ({"holds": [{"approver": "ops"}, {"approver": "b"}]}, "held by ops +1", "b"),
        ({"require": "any", "have": [], "missing": ["any"]}, "none", "one approval"),
        ({"require": "count: 2", "missing": ["2 more"]}, "2 more needed", "2 more"),
        ({"status": "Started"}, "-", None),
    ],
)
def test_the_approvals_say_how_far_they_are_and_who_is_missing(changes, said, missing):
    one = event(**changes)
    assert (progress(one), lacking(one)) == (said, missing)


def test_an_event_without_approvals_has_no_progress():
    assert progress({"status": "Completed", "approvals": None}) == "-"
    assert lacking({"status": "Completed"}) is None
