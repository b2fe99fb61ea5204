"""What `seb check --connect` proves of a collector."""

import pytest
from support.results import proved
from support.splunk_sending import PLACE, configured
from support.splunk_server import TOKEN, Token

from bridge.plugins import Unavailable
from sinks.splunk import sink


async def test_its_check_tries_the_token_and_publishes_nothing(slow):
    said = await proved(sink, configured(slow.url, acknowledge=True, index="main"), PLACE)
    assert said == (
        f"reached {slow.url}, which accepts the token and acknowledges; nothing was published; "
        "the first event shows whether the token may use index main"
    )
    assert slow.events == []


@pytest.mark.parametrize(
    ("token", "keys", "why"),
    [
        (Token(enabled=False), {}, r"the token is disabled \(403: Token disabled\)"),
        (Token(), {"token": "wrong"}, "it does not know the token"),
        (Token(), {"acknowledge": True}, "the token does not acknowledge"),
    ],
)
async def test_its_check_says_what_is_wrong(server, token, keys, why):
    server.tokens[TOKEN] = token
    with pytest.raises(Unavailable, match=why):
        await proved(sink, configured(server.url, **keys), PLACE)


async def test_its_check_does_not_wait_forever(server):
    server.stall()
    with pytest.raises(Unavailable, match=r"no answer within 0\.18 s"):
        await proved(sink, configured(server.url, retry={"timeout": "200ms"}), PLACE)
