"""The URL that is posted to: which is taken, and that it is not shown."""

from functools import partial

import pytest
from support.sink_settings import complaint
from support.sink_settings import webhook as configured

from bridge.plugins import Place

refused = partial(complaint, configured)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "is not a URL to post to; write https://HOST/PATH"),
        ("pager.example/s3cret", "is not a URL"),
        ("ftp://pager.example/s3cret", "is not a URL"),
        ("https:///s3cret", "is not a URL"),
        ("https://pager.example:0/s3cret", "is not a URL"),
        ("https://pager.example:65536/s3cret", "is not a URL"),
        ("https://pager.example:x/s3cret", "is not a URL"),
        ("https://päger.example/s3cret", "is not a URL"),
        ("https://pager.example/s3cret with spaces", "percent-encoded"),
        ("https://pager.example/s3cret\r\nX-Evil: 1", "is not a URL"),
        ("https://pager.example/s3cret\\", "is not a URL"),
        ("https://[::1/s3cret", "is not a URL"),
        ("https://pager.example/" + "x" * 2048, "at most 2048"),
        ("https://ann:s3cret@pager.example/", "contains a user name"),
        ("https://s3cret@pager.example/", "contains a user name"),
        ("https://pager.example/#s3cret", "contains a fragment"),
        ("http://pager.example/s3cret", "would be sent to pager.example in clear text"),
        ("http://localhost.example/s3cret", "would be sent to localhost.example in clear text"),
        ("https://pager.example/{s3}", "{s3} is unknown; choose from observer, vm_name"),
        ("https://{vm_name}.example/s3cret", "is not a URL"),
    ],
)
def test_a_bad_url_is_refused_without_being_shown(url, why):
    said = refused(url=url)
    assert why in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "url",
    [
        "https://pager.example",
        "https://pager.example:8443/a/b?c=d&e=%20~!$'()*+,;=:@[]",
        "https://pager.example?access_token=x",
        "https://[2001:db8::1]/",
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://[::1]:8080/x",
    ],
)
def test_a_url_is_https_or_stays_on_this_machine(url):
    assert configured(url=url).target(Place()).url == url


def test_clear_text_may_be_meant():
    target = configured(url="http://pager.example/", insecure=True).target(Place())
    assert (target.origin, target.secure) == ("http://pager.example", False)


def test_a_proxy_elsewhere_makes_loopback_a_far_place():
    here = {"url": "http://127.0.0.1/"}
    assert "in clear text" in refused(**here, proxy="http://proxy.example:3128")
    assert configured(**here, proxy="http://127.0.0.1:3128")
    assert configured(**here, proxy="http://proxy.example:3128", insecure=True)
