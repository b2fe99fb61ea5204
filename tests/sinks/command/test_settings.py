"""The keys of the command sink."""

import pytest
from pydantic import ValidationError

from bridge.plugins.sinks import find_sink

plugin = find_sink("command")


def settings(**keys):
    return plugin.settings.model_validate({"type": "command", "argv": ["true"], **keys})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"argv": []}, "at least 1 item"),
        ({"argv": [""]}, "an absolute path, or a name on PATH"),
        ({"argv": ["bin/drain"]}, "an absolute path, or a name on PATH"),
        ({"argv": ["./drain"]}, "an absolute path, or a name on PATH"),
        ({"argv": ["true", "a\0b"]}, "NUL"),
        ({"argv": "true"}, "valid list"),
        ({"cwd": "here"}, "the directory must be an absolute path"),
        ({"env": {"A-B": "x"}}, "pattern"),
        ({"env": {"event_ID": "x"}}, "event_ID is reserved"),
        ({"env": {"A": ""}}, "not empty"),
        ({"timeout": "0s"}, "greater than 0"),
        ({"concurrency": 0}, "greater than or equal to 1"),
        ({"then": "hold"}, "approve"),
    ],
)
def test_a_key_that_cannot_work_is_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        settings(**keys)


def test_it_says_what_it_will_do_without_its_arguments():
    one = settings(argv=["/opt/drain", "--token=hush"], then="approve")
    assert one.describe() == (
        "runs /opt/drain for each CloudEvent (JSON on stdin), one at a time, each for 5m at most, "
        "and casts this VM's vote when that succeeds"
    )
    assert "up to 4 at a time, each for 90s" in settings(concurrency=4, timeout="90s").describe()


def test_a_batch_is_what_runs_at_once_and_the_notice_does_not_shorten_it():
    assert settings(concurrency=3).largest_batch == 3
    assert settings(timeout="10m").longest_send > 600
