import json
import re
from datetime import timedelta

import pytest
from support.world import ME, NOON, OTHER, published

from bridge.cli.watching.picture import Picture

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
NEWS = [json.loads(one.body) for one in published().values()]


def event(event_id=FIRST, *, left=723, **changes):
    due = NOON + timedelta(seconds=left)
    usual = {"eventId": event_id, "eventType": "Reboot", "status": "Scheduled", "drill": False}
    usual |= {"resources": [ME, OTHER], "notBefore": due.isoformat()}
    usual |= {"approveBy": (due - timedelta(seconds=5)).isoformat()}
    return {**usual, **changes}


def approvals(**changes):
    usual = {"require": "each-resource", "dryRun": False, "satisfied": False, "grant": None}
    return {**usual, "have": [ME], "missing": [OTHER], "holds": [], **changes}


def shown(picture, width=80, height=24):
    lines = picture.lines(NOON, width, height)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]


def test_what_is_pending_counts_down_and_the_newest_cloudevent_is_on_top():
    picture = Picture("vm-0", [event(approvals=approvals())])
    picture.latest.extend(NEWS)
    lines = shown(picture)
    assert lines[0].startswith("Scheduled events of vm-0: 1 pending")
    assert lines[0].endswith("12:00:00Z")
    assert lines[3].split() == [
        "602D9444", "Reboot", "Scheduled", "12m", "03s", "11m", "58s", "1", "of", "2", ME, "+1",
    ]  # fmt: skip
    times = [line[:9] for line in lines[6:-2] if line]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (40, 10), (200, 60), (20, 5), (10, 3)])
def test_it_fits_every_terminal(size):
    width, height = size
    picture = Picture("vm-0", [event(f"E{n}-{FIRST}") for n in range(30)])
    picture.latest.extend(NEWS)
    lines = shown(picture, *size)
    assert len(lines) <= height
    assert width < 60 or max(map(len, lines)) <= width


def test_more_events_than_fit_are_counted():
    picture = Picture("vm-0", [event(f"E{n:03}") for n in range(30)])
    assert "and 22 more" in shown(picture)
    assert "No scheduled event is pending." in shown(Picture("vm-0"))


def test_what_cannot_be_read_is_said_in_the_first_line():
    picture = Picture("vm-0", [event()], trouble="No bridge is running here")
    assert shown(picture)[0] == "No bridge is running here. Trying again."


@pytest.mark.parametrize(("left", "color"), [(30, "\x1b[31m"), (200, "\x1b[33m"), (900, "602D")])
def test_little_time_has_a_color(left, color):
    assert Picture("vm-0", [event(left=left)]).lines(NOON, 80, 24)[3].startswith(color)


def test_text_from_outside_cannot_control_the_terminal():
    evil = "\x1b[2J\x07evil"
    picture = Picture(evil, [event(f"E{evil}", eventType=evil, resources=[evil])], trouble=None)
    for line in shown(picture):
        assert line.isprintable(), line
