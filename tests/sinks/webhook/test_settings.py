"""The keys of a webhook: what each may be, and the one sentence when it is not."""

import re
from functools import partial
from pathlib import Path

import pytest
from support.sink_settings import complaint
from support.sink_settings import webhook as configured

from bridge.config import ConfigError, load
from bridge.plugins import Place, SinkSettings, Unavailable
from sinks.webhook import WebhookSettings

HMAC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUBLIC = "whpk_" + "A" * 43 + "="
PRIVATE = "whsk_" + "A" * 43 + "="
OAUTH = {"token_url": "https://login.example/t", "client_id": "a", "client_secret": "b"}
IDENTITY = {"resource": "https://a.b"}
BASIC = {"username": "ann", "password": "s3cret"}


refused = partial(complaint, configured)


def test_the_defaults_are_those_of_the_contract():
    made = configured()
    assert (made.mode, made.handshake, made.concurrency) == ("structured", "off", 8)
    assert (made.secret, made.headers, made.insecure, made.proxy) == ((), {}, False, None)


def test_it_is_given_no_more_than_it_can_send_in_a_few_rounds():
    assert configured().largest_batch == 64
    assert configured(concurrency=2).largest_batch == 16
    assert configured(mode="batch").largest_batch == 500


def test_it_says_where_it_posts_without_path_or_query():
    assert configured().describe() == (
        "posts CloudEvents in structured mode to https://pager.example/…"
    )
    made = configured(
        secret=HMAC,
        basic=BASIC,
        tls={"certificate": "c.pem", "insecure": True},
        proxy="http://proxy.example:3128",
        handshake="required",
        origin="bridge.example",
    )
    assert made.describe() == (
        "posts CloudEvents in structured mode to https://pager.example/…, asking for consent first "
        "(required), signed, authorized by basic, showing a client certificate, over TLS "
        "without verification, through the proxy http://proxy.example:3128"
    )
    assert (
        configured(format="cloudevents").describe().startswith("posts CloudEvents as cloudevents")
    )
    assert configured(url="https://a.example/").describe().endswith("to https://a.example")
    for secret in ("T0K3N", "t0p", "s3cret", HMAC):
        assert secret not in made.describe() + repr(made) + made.model_dump_json()


def test_a_url_may_name_the_vm():
    made = configured(url="https://pager.example/{vm_name}/x")
    place = Place({"vm_name": "web/1"})
    assert made.target(place).url == "https://pager.example/web_1/x"
    with pytest.raises(Unavailable, match="vm_name"):
        made.target(Place())


def test_a_url_in_a_file_is_read_when_needed_and_judged_alike(tmp_path: Path):
    file = tmp_path / "url"
    made = configured(url={"file": str(file)})
    with pytest.raises(Unavailable, match="url cannot be read"):
        made.target(Place())
    assert made.describe().endswith("to the URL in a file")
    file.write_text("http://pager.example/s3cret\n")
    with pytest.raises(Unavailable, match="in clear text") as told:
        made.target(Place())
    assert "s3cret" not in str(told.value)
    file.write_text("https://pager.example/s3cret-2\n")
    assert made.target(Place()).origin == "https://pager.example"
    assert made.describe().endswith("to https://pager.example/…")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"mode": "avro"}, "'structured', 'binary' or 'batch'"),
        ({"batch_size": 10}, "batch_size is for mode: batch"),
        ({"mode": "batch", "batch_size": 0}, "greater than or equal to 1"),
        ({"mode": "batch", "batch_size": 501}, "less than or equal to 500"),
        ({"concurrency": 0}, "greater than or equal to 1"),
        ({"concurrency": 65}, "less than or equal to 64"),
        ({"format": "cloudevents", "mode": "binary"}, "format replaces mode"),
        ({"format": "cloudevents", "mode": "batch"}, "format replaces mode"),
        ({"secret": HMAC, "mode": "binary"}, "secret needs mode: structured"),
        ({"secret": HMAC, "mode": "batch"}, "secret needs mode: structured"),
        ({"secret": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "a key starts with whsec_"),
        ({"secret": "whsec_c2hvcnQ="}, "24 to 64 bytes"),
        ({"secret": PUBLIC}, "a public key (whpk_) cannot sign"),
        ({"secret": [HMAC, PUBLIC]}, "a public key (whpk_) cannot sign"),
        ({"secret": []}, "takes one key, or a list of at most 4"),
        ({"secret": [HMAC] * 5}, "takes one key, or a list of at most 4"),
        ({"secret": 7}, "a secret must be text"),
        ({"headers": ["X"]}, "dictionary"),
        ({"headers": {"X Y": "a"}}, "'X Y' is not a header name"),
        ({"headers": {"X:Y": "a"}}, "'X:Y' is not a header name"),
        ({"headers": {"X\r\nY": "a"}}, "is not a header name"),
        ({"headers": {"": "a"}}, "is not a header name"),
        ({"headers": {"X": "s3cret\r\nY: b"}}, "the value of X must be visible ASCII"),
        ({"headers": {"X": "s3cret\n"}}, "the value of X must be visible ASCII"),
        ({"headers": {"X": " s3cret"}}, "with spaces only between them"),
        ({"headers": {"X": "s3crét"}}, "must be visible ASCII"),
        ({"headers": {"X": "x" * 8193}}, "at most 8192"),
        ({"headers": {"x-a": "1", "X-A": "2"}}, "must be different headers, whatever their case"),
        ({"headers": {f"X-{n}": "1" for n in range(51)}}, "at most 50"),
        ({"headers": {"Content-Type": "text/plain"}}, "the bridge sets Content-Type itself"),
        ({"headers": {"host": "elsewhere"}}, "the bridge sets host itself"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "the bridge sets Transfer-Encoding"),
        ({"headers": {"Webhook-Id": "1"}}, "the bridge sets Webhook-Id itself"),
        ({"headers": {"CE-Type": "x"}}, "the bridge sets CE-Type itself"),
        ({"bearer": "s3cret\r\nX: y"}, "a token must be visible ASCII"),
        ({"bearer": "a", "basic": BASIC}, "bearer and basic each set Authorization; keep one"),
        ({"oauth": OAUTH, "managed_identity": IDENTITY}, "oauth and managed_identity each set"),
        ({"bearer": "a", "headers": {"authorization": "b"}}, "bearer and authorization each set"),
        ({"basic": {**BASIC, "username": "a:b"}}, "without a colon"),
        ({"basic": {**BASIC, "username": "a\nb"}}, "without control characters"),
        ({"basic": {"username": "a"}}, "required"),
        ({"url": "http://127.0.0.1/", "tls": True}, "so tls has no effect"),
        ({"proxy": "https://proxy.example"}, "is not a proxy; write http://HOST:PORT"),
        ({"proxy": "socks5://proxy.example"}, "is not a proxy"),
        ({"proxy": "http://ann:s3cret@proxy.example"}, "without a password"),
        ({"proxy": "http://proxy.example/path"}, "is not a proxy"),
        ({"proxy": {"url": "http://a", "username": "b"}}, "username and password together"),
        (
            {"proxy": {"url": "http://a", "username": "b:c", "password": "d"}},
            "without a colon or control characters",
        ),
        ({"handshake": "maybe"}, "'off', 'optional' or 'required'"),
        ({"handshake": "required"}, "handshake needs origin"),
        ({"origin": "a.example"}, "origin is for a handshake"),
        ({"handshake": "optional", "origin": "a b"}, "is not a DNS name"),
        ({"handshake": "optional", "origin": "a\r\nX: y"}, "is not a DNS name"),
        ({"handshake": "optional", "origin": "{who}.example"}, "{who} is unknown"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence_without_secrets(keys, why):
    said = refused(**keys)
    assert why in said
    assert "s3cret" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "keys",
    [
        {"secret": [HMAC, PRIVATE]},
        {"secret": {"file": "key"}},
        {"secret": [{"file": "new"}, {"file": "old"}]},
        {"secret": HMAC, "format": "cloudevents", "mode": "structured"},
        {"headers": {"X-Team": "ops and more", "Authorization": {"file": "x"}, "Cookie": "a=b"}},
        {"mode": "batch", "batch_size": 500},
        {"proxy": {"url": "http://proxy.example:3128/", "username": "a", "password": "b"}},
        {"handshake": "optional", "origin": "{vm_name}.bridge.example"},
        {"oauth": OAUTH},
        {"managed_identity": IDENTITY},
        {"tls": False, "url": "http://127.0.0.1/"},
    ],
)
def test_what_works_is_taken(keys):
    made = configured(**keys)
    assert made == configured(**keys)


def test_a_file_with_mistakes_is_answered_by_file_line_and_key(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "sinks:\n"
        "  pager:\n"
        "    type: webhook\n"
        "    url: http://pager.example/?access_token=${TOKEN}\n"
        "    secrets: x\n"
    )
    with pytest.raises(ConfigError) as told:
        load(file, {"TOKEN": "s3cret"})
    problems = str(told.value)
    assert "sinks.pager.url: would be sent to pager.example in clear text" in problems
    assert "sinks.pager.secrets: unknown key; did you mean secret?" in problems
    assert "s3cret" not in problems


def test_off_is_a_word_in_the_file(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text("sinks: {a: {type: webhook, url: 'https://a.example', handshake: off}}")
    made = load(file, {}).sinks["a"]
    assert isinstance(made, WebhookSettings)
    assert made.handshake == "off"


PAGE = Path(__file__).parents[3] / "docs/sinks/webhook.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_what_the_page_shows_can_be_used(tmp_path: Path, example: str):
    file = tmp_path / "config.yaml"
    file.write_text(example)
    assert load(file, {"PAGER_SECRET": HMAC}).sinks


def test_the_page_explains_every_key_of_its_own():
    page = PAGE.read_text(encoding="utf-8")
    own = WebhookSettings.model_fields.keys() - SinkSettings.model_fields.keys()
    assert [name for name in sorted(own) if f"`{name}`" not in page] == []
