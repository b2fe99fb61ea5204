"""Parts of a webhook's settings: headers, passwords, a proxy, keys to sign with."""

import base64

import pytest

from sinks.webhook import WebhookSettings
from sinks.webhook.options import LONGEST, MOST_KEYS, Proxy, basic, check_name, check_value


def test_user_and_password_are_one_text_in_utf_8():
    scheme, _, pair = basic("änn", "p:w").partition(" ")
    assert scheme == "Basic"
    assert base64.b64decode(pair).decode() == "änn:p:w"


@pytest.mark.parametrize("name", ["X-Team", "x!#$%&'*+.^_`|~-9"])
def test_a_header_is_named_as_http_has_it(name):
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "X Team", "X:Team", "X\nTeam", "x" * 129, None, 7])
def test_what_is_not_a_header_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a header name"):
        check_name(name)


@pytest.mark.parametrize("name", ["Host", "content-TYPE", "ce-id", "Webhook-Signature"])
def test_a_header_that_the_bridge_sets_is_not_for_others(name):
    with pytest.raises(ValueError, match=f"the bridge sets {name} itself"):
        check_name(name)


@pytest.mark.parametrize("value", ["", " a", "a ", "a\r\nb", "ä", "x" * (LONGEST + 1)])
def test_a_value_that_could_break_out_of_its_header_is_refused_without_being_shown(value):
    with pytest.raises(ValueError, match=r"^the token must be visible ASCII"):
        check_value(value, "the token")


def test_a_value_may_be_as_long_as_it_may_be():
    assert check_value("x" * LONGEST, "it") == "x" * LONGEST


@pytest.mark.parametrize(
    ("url", "near"),
    [("http://127.0.0.1:3128/", True), ("http://proxy.example:3128", False)],
)
def test_a_proxy_is_near_when_it_is_on_this_machine(url, near):
    proxy = Proxy(url=url)
    assert proxy.url == url.rstrip("/")
    assert proxy.near is near


def test_the_schema_shows_both_ways_to_write_keys_and_a_proxy():
    properties = WebhookSettings.model_json_schema()["properties"]
    one, several = properties["secret"]["anyOf"]
    assert several["items"] == one
    assert (several["minItems"], several["maxItems"]) == (1, MOST_KEYS)
    assert {"type": "string"} in properties["proxy"]["anyOf"]
