"""What a CloudEvent is to the collector, in each format."""

import json

import pytest
from support.cloudevents import make
from support.splunk_sending import configured

from sinks.splunk.binding import open_envelopes


def enveloped(**keys) -> dict:
    return json.loads(open_envelopes(configured(**keys)).encode(make()))


def test_without_a_format_the_event_is_the_whole_cloudevent():
    made = enveloped()
    assert made["event"] == make().envelope
    assert (made["sourcetype"], made["host"]) == ("azure:scheduledevents", "FrontEnd_IN_0")
    assert "index" not in made


PLACED = {"index": "main", "sourcetype": "azse", "source": "bridge", "host": "web-1"}


@pytest.mark.parametrize("form", [None, "splunk-hec", "cloudevents", "ecs", "cef"])
def test_whatever_the_format_splunk_puts_it_where_the_sink_says(form):
    made = enveloped(format=form, **PLACED)
    assert PLACED.items() <= made.items()
    assert made["time"] == 1794766488
    assert isinstance(made["event"], str if form == "cef" else dict)


def test_what_the_format_itself_says_wins():
    form = {"type": "splunk-hec", "index": "special"}
    assert enveloped(format=form, **PLACED)["index"] == "special"
    assert enveloped(format=form, **PLACED)["source"] == "bridge"
