"""The keys of the Splunk sink."""

from functools import partial

import pytest
from support.sink_settings import complaint
from support.splunk_sending import configured
from support.splunk_server import TOKEN

refused = partial(complaint, configured)


@pytest.mark.parametrize("end", ["", "/", "/services/collector", "/services/collector/event"])
def test_the_path_of_the_collector_may_be_left_out_or_pasted_along(end):
    made = configured(f"https://splunk.example:8088{end}")
    assert made.endpoint("event") == "https://splunk.example:8088/services/collector/event"


@pytest.mark.parametrize(
    "wrong",
    ["splunk.example", "ftp://a", "https://", "https://u:pass@a", "https://a?x=1", "https://a:0"],
)
def test_what_is_not_a_url_is_refused_without_quoting_a_password(wrong):
    said = refused(url=wrong)
    assert "must look like https://HOST:8088" in said


def test_the_token_does_not_leave_the_machine_in_clear_text_unless_that_is_meant():
    assert "the token would go to far.example in clear text" in refused(url="http://far.example")
    assert configured("http://far.example", insecure=True)
    assert configured("http://127.0.0.1:8088")
    assert "tls has no effect with http://" in refused(url="http://127.0.0.1:1", tls=True)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"proxy": "https://a:1"}, "must look like http://HOST:PORT"),
        ({"proxy": "http://a:1/path"}, "has a path"),
        ({"index": ""}, "index"),
        ({"token": ""}, "token"),
    ],
)
def test_other_keys_are_judged_too(keys, why):
    assert why in refused(**keys)


def test_it_describes_itself_and_never_its_token():
    made = configured(index="main", acknowledge=True, proxy="http://proxy.example:3128")
    assert made.describe() == (
        "sends CloudEvents to Splunk's HTTP Event Collector at https://splunk.example:8088, "
        "into index main, waiting until they are indexed, through the proxy http://proxy.example:3128"
    )
    assert TOKEN not in repr(made)
    assert configured(format="ecs").describe().startswith("sends CloudEvents as ecs to")
