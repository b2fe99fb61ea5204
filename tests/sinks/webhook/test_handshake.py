"""The handshake of CloudEvents webhooks: asked first, agreed by a header, kept to afterward."""

from typing import Any

import pytest
from support.cloudevents import batch, make
from support.results import pause_of
from support.webhook_receiver import Receiver, says

from bridge.plugins import Gone, Place, Unavailable
from sinks.webhook import WebhookSettings, sink
from sinks.webhook.errors import Response
from sinks.webhook.handshake import SLOW, Pace, read_consent

PLACE = Place({"vm_name": "web-1"})
ORIGIN = "web-1.bridge.example"


def configured(receiver: Receiver, **keys: Any) -> WebhookSettings:
    usual = {"handshake": "required", "origin": "{vm_name}.bridge.example"}
    return WebhookSettings.model_validate({"type": "webhook", "url": receiver.url, **usual, **keys})


def consents(rate: str | None = None, origin: str = ORIGIN, status: int = 200):
    more = {} if rate is None else {"WebHook_Allowed_Rate": rate}
    return says(status, WebHook_Allowed_Origin=origin, **more)


@pytest.mark.parametrize(
    ("allowed", "rate", "consent"),
    [
        (ORIGIN, None, (True, None)),
        (ORIGIN.upper(), "*", (True, None)),
        ("*", "100", (True, 100)),
        (ORIGIN, "0", (True, SLOW)),
        (ORIGIN, "many", (True, SLOW)),
        ("other.example", "100", (False, SLOW)),
        (f"{ORIGIN}, other.example", None, (False, SLOW)),
        (None, "100", (False, SLOW)),
        ("", None, (False, SLOW)),
    ],
)
def test_consent_is_a_header_whatever_the_status_is(allowed, rate, consent):
    for status in (200, 405, 204):
        answer = Response(status, allowed_origin=allowed, allowed_rate=rate)
        found = read_consent(answer, ORIGIN)
        assert (found.given, found.rate) == consent


def test_a_pace_is_so_many_in_any_minute():
    pace = Pace(2)
    assert [pace.take(now) for now in (0.0, 10.0, 20.0, 59.0)] == [0.0, 0.0, 40.0, 1.0]
    assert pace.take(60.0) == 0.0
    assert pace.take(61.0) == 9.0


async def test_it_asks_once_and_then_shows_its_origin_with_each_post(receiver):
    receiver.options = consents(status=405)
    async with sink.open(configured(receiver, bearer="t0p"), PLACE) as send:
        assert await send(batch(2)) == [None] * 2
        assert await send(batch(2, first=3)) == [None] * 2
    [asked] = receiver.asked
    assert asked.path == "/hook"
    assert asked.headers["WebHook-Request-Origin"] == ORIGIN
    assert {got.headers["WebHook-Request-Origin"] for got in receiver.got} == {ORIGIN}
    assert len(receiver.got) == 4


async def test_off_asks_nothing(receiver):
    keys = {"handshake": "off", "origin": None}
    async with sink.open(configured(receiver, **keys), PLACE) as send:
        assert await send([make()]) == [None]
    assert receiver.asked == []
    assert "WebHook-Request-Origin" not in receiver.got[0].headers


async def test_required_and_refused_is_unavailable_and_says_what_to_do(receiver):
    for answer in (says(200), says(405), consents(origin="other.example")):
        receiver.options = answer
        with pytest.raises(Unavailable, match="does not agree to the handshake"):
            async with sink.open(configured(receiver), PLACE):
                pass
    assert receiver.got == []


async def test_optional_and_refused_goes_on_slowly_without_the_header(receiver):
    async with sink.open(configured(receiver, handshake="optional", concurrency=1), PLACE) as send:
        results = await send(batch(SLOW + 3))
    assert results[:SLOW] == [None] * SLOW
    assert [type(result) for result in results[SLOW:]] == [Unavailable] * 3
    assert all(50 < pause_of(result) <= 60 for result in results[SLOW:])
    assert str(results[-1]) == "at most 10 requests a minute"
    assert "WebHook-Request-Origin" not in receiver.got[0].headers


async def test_the_allowed_rate_is_kept(receiver):
    receiver.options = consents("3")
    async with sink.open(configured(receiver), PLACE) as send:
        results = await send(batch(5))
    assert results.count(None) == len(receiver.got) == 3


async def test_what_the_bridge_sends_earlier_than_asked_exceeds_the_rate(receiver):
    receiver.options = consents("3")
    async with sink.open(configured(receiver), PLACE) as send:
        assert (await send(batch(3))).count(None) == 3
        [asked] = await send([make(4)])
        assert pause_of(asked) > 50
        assert await send([make(4)]) == [None]
    assert len(receiver.got) == 4


@pytest.mark.parametrize("mode", ["optional", "required"])
async def test_a_receiver_that_cannot_be_asked_is_asked_later(receiver, mode):
    receiver.options = says(429, Retry_After="5")
    with pytest.raises(Unavailable) as told:
        async with sink.open(configured(receiver, handshake=mode), PLACE):
            pass
    assert told.value.retry_after == 5.0
    receiver.options = says(410)
    with pytest.raises(Gone):
        async with sink.open(configured(receiver, handshake=mode), PLACE):
            pass
    await receiver.down()
    with pytest.raises(Unavailable, match="nothing listens there"):
        async with sink.open(configured(receiver, handshake=mode), PLACE):
            pass


async def test_another_url_is_another_receiver_to_ask(receiver, tmp_path):
    receiver.options = consents()
    file = tmp_path / "url"
    file.write_text(receiver.url)
    async with sink.open(configured(receiver, url={"file": str(file)}), PLACE) as send:
        assert await send([make(1)]) == [None]
        file.write_text(f"{receiver.url}/2")
        assert await send([make(2)]) == [None]
    assert [asked.path for asked in receiver.asked] == ["/hook", "/hook/2"]
