"""The format that changes nothing."""

from support.cloudevents import HOSTILE, make

from bridge.plugins.formats import find_format


def test_the_body_goes_out_as_the_journal_has_it():
    event = make(description=HOSTILE)
    plugin = find_format("cloudevents")
    format_ = plugin.open(plugin.settings())
    assert format_.encode(event) == event.body
    assert format_.content_type == "application/cloudevents+json; charset=utf-8"
    assert event.body.startswith(format_.begins)
