"""What a format does for any sink, and how it is named in a configuration."""

import pytest
from support.cloudevents import make

from bridge.plugins import CloudEvent, Format, FormatPlugin, Misconfigured, Rejected, read_format
from bridge.plugins.formats import find_format, format_data, installed_formats


def test_our_own_formats_are_installed_like_any_others():
    assert {"cloudevents", "slack", "pagerduty"} <= set(installed_formats())
    assert isinstance(find_format("cloudevents"), FormatPlugin)


def test_the_error_for_an_unknown_format_lists_all_formats():
    with pytest.raises(Misconfigured, match=r"no format type 'slak'; choose from .*slack"):
        find_format("slak")


def test_a_format_is_written_as_its_name_or_as_a_mapping():
    assert format_data("slack") == format_data({"type": "slack"}) == {"type": "slack"}
    chosen = read_format("slack")
    assert chosen == read_format({"type": "slack"})
    assert read_format(chosen) is chosen


@pytest.mark.parametrize("written", [None, 7, ["slack"], {}, {"type": 7}])
def test_an_invalid_format_is_misconfigured(written):
    with pytest.raises(Misconfigured, match=r"must be a format's name, or .*choose from .*slack"):
        format_data(written)


def test_a_cloudevent_that_cannot_be_encoded_does_not_affect_others():
    good, bad = make(1), make(2)

    def encode(cloudevent: CloudEvent) -> bytes:
        if cloudevent.id == bad.id:
            raise Rejected("no words for it")
        return cloudevent.id.encode()

    first, second, third = Format(encode, "text/plain").encode_each([good, bad, good])
    assert first == third == good.id.encode()
    assert isinstance(second, Rejected)
    assert str(second) == "no words for it"


def test_a_format_wants_everything_unless_it_says_otherwise():
    assert Format(lambda _: b"", "text/plain").wants(make(1))
