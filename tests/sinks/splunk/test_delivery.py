"""The Splunk sink: its keys, its envelopes, and what it makes of each of the collector's answers."""

import asyncio
import json
import ssl
from uuid import UUID

import pytest
from aiohttp import web
from pydantic import ValidationError
from support.certificates import issue
from support.cloudevents import LARGEST, batch, make
from support.metadata_far_side import FarSide, http
from support.splunk_server import TEXTS, TOKEN, Token, splunk_server

from bridge.plugins import Place, Rejected, Unavailable
from sinks.splunk import SplunkSettings, delivery, sink
from sinks.splunk.binding import open_envelopes
from sinks.splunk.connection import name_channel
from sinks.splunk.errors import Accepted, Answer, Refused, judge

PLACE = Place({"vm_id": "vm-1"}, sink="siem")


@pytest.fixture
async def server():
    async with splunk_server() as made:
        yield made


def configured(url: str = "https://splunk.example:8088", **keys) -> SplunkSettings:
    return SplunkSettings.model_validate({"type": "splunk", "url": url, "token": TOKEN} | keys)


def refused(**keys) -> str:
    with pytest.raises(ValidationError) as told:
        configured(**keys)
    return str(told.value)


async def deliver(server, cloudevents, **keys):
    async with sink.open(configured(server.url, **keys), PLACE) as send:
        return list(await send(cloudevents))


# Keys


@pytest.mark.parametrize("end", ["", "/", "/services/collector", "/services/collector/event"])
def test_the_path_of_the_collector_may_be_left_out_or_pasted_along(end):
    made = configured(f"https://splunk.example:8088{end}")
    assert made.endpoint("event") == "https://splunk.example:8088/services/collector/event"


@pytest.mark.parametrize(
    "wrong",
    ["splunk.example", "ftp://a", "https://", "https://u:pass@a", "https://a?x=1", "https://a:0"],
)
def test_what_is_no_url_is_refused_without_repeating_what_may_be_a_password(wrong):
    said = refused(url=wrong)
    assert "must be as in https://HOST:8088" in said


def test_the_token_does_not_leave_the_machine_in_clear_text_unless_that_is_meant():
    assert "the token would go to far.example in clear text" in refused(url="http://far.example")
    assert configured("http://far.example", insecure=True)
    assert configured("http://127.0.0.1:8088")
    assert "tls is of no use with http://" in refused(url="http://127.0.0.1:1", tls=True)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"max_request": "1KiB"}, "max_request"),
        ({"channel": "no-guid"}, "channel"),
        ({"proxy": "https://a:1"}, "must be as in http://HOST:PORT"),
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


def test_the_channel_is_the_same_after_a_restart_and_another_for_each_vm_and_sink():
    places = [PLACE, Place({"vm_id": "vm-2"}, sink="siem"), Place({"vm_id": "vm-1"}, sink="other")]
    named = [name_channel(configured(), place) for place in places]
    assert len(set(named)) == 3
    assert named[0] == name_channel(configured(), PLACE) == str(UUID(named[0]))
    given = "0D4B1F3A-0000-4000-8000-000000000000"
    assert name_channel(configured(channel=given), PLACE) == given.lower()


# Envelopes


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


# Answers


@pytest.mark.parametrize("code", [1, 2, 3, 4, 7, 10, 11, 14])
def test_what_an_operator_has_to_mend_waits_and_is_not_asked_for_often(code):
    status, text = TEXTS[code]
    verdict = judge(Answer(status, {"text": text, "code": code, "invalid-event-number": 0}))
    assert isinstance(verdict, Unavailable)
    assert verdict.retry_after == 60
    assert f"({status}: {text})" in str(verdict)


@pytest.mark.parametrize("code", [5, 6, 12, 13, 15])
def test_what_is_wrong_with_an_event_is_told_of_that_event(code):
    said = {"text": TEXTS[code][1], "code": code, "invalid-event-number": 3}
    verdict = judge(Answer(400, said))
    assert isinstance(verdict, Refused)
    assert verdict.number == 3


@pytest.mark.parametrize(
    ("status", "said", "retry_after", "wait", "words"),
    [
        (503, {"code": 9, "text": "Server is busy"}, None, None, "now (503: Server is busy)"),
        (503, {"code": 9}, "17", 17, "it cannot take it now (503)"),
        (429, {}, " 5 ", 5, "it cannot take it now (429)"),
        (503, {}, "Wed, 21 Oct 2015 07:28:00 GMT", None, "it cannot take it now"),
        (500, {"code": 8}, None, None, "it cannot take it now (500)"),
        (404, {}, None, 60, "there is no HTTP Event Collector; correct url (404)"),
        (403, {}, None, 60, "it does not accept the token (403)"),
        (407, {}, None, 60, "the proxy wants to know who we are"),
        (302, {}, None, 60, "what answers is no HTTP Event Collector (302)"),
        (200, {}, None, 60, "what answers is no HTTP Event Collector (200)"),
        (200, {"code": 17, "text": "HEC is healthy"}, None, 60, "is no HTTP Event Collector"),
        (200, {"code": False}, None, 60, "is no HTTP Event Collector"),
        (418, {"text": "a\nb\x1b[1m " + "x" * 999}, None, None, "(418: a b [1m xxx"),
    ],
)
def test_whatever_else_it_answers_nothing_is_lost(status, said, retry_after, wait, words):
    verdict = judge(Answer(status, said, retry_after))
    assert isinstance(verdict, Unavailable)
    assert verdict.retry_after == wait
    assert words in str(verdict)
    assert len(str(verdict)) < 300


def test_only_success_is_success():
    assert judge(Answer(200, {"code": 0})) == Accepted(None)
    assert judge(Answer(200, {"code": 0, "ackId": 7})) == Accepted(7)


def test_an_answer_that_repeats_the_token_does_not_betray_it():
    verdict = judge(Answer(403, {"code": 4, "text": f"unknown {TOKEN}"}), TOKEN)
    assert TOKEN not in str(verdict)


# Sending


async def test_a_batch_is_one_request_of_objects_without_anything_between(server):
    assert await deliver(server, batch(3)) == [None] * 3
    [(path, headers, body)] = server.requests
    assert path == "/services/collector/event"
    assert headers["Authorization"] == f"Splunk {TOKEN}"
    assert UUID(headers["X-Splunk-Request-Channel"])
    assert body.count(b"}{") == 2


async def test_a_large_batch_goes_in_several_requests(server):
    sent = batch(6, size=LARGEST)
    assert await deliver(server, sent, max_request="140KiB") == [None] * 6
    assert [len(body) <= 140 * 1024 for _, _, body in server.requests] == [True] * 3
    assert server.ids == [cloudevent.id for cloudevent in sent]


async def test_gzip_makes_it_smaller(server):
    await deliver(server, batch(20))
    await deliver(server, batch(20), compression="gzip")
    # The server unpacks bodies by itself, so their length is what the headers say.
    plain, packed = (int(headers["Content-Length"]) for _, headers, _ in server.requests)
    assert server.requests[1][1]["Content-Encoding"] == "gzip"
    assert packed < plain / 5
    assert server.ids[:20] == server.ids[20:]


@pytest.mark.parametrize("numbers", [True, False], ids=["numbered", "not numbered"])
@pytest.mark.parametrize("guilty", [{0}, {4}, {1, 2}, {0, 1, 2, 3, 4}])
async def test_the_guilty_are_rejected_and_the_others_sent_once_more(server, numbers, guilty):
    sent = batch(5)
    server.numbers, server.refused = numbers, {sent[number].id for number in guilty}
    results = await deliver(server, sent)
    assert {n for n, result in enumerate(results) if isinstance(result, Rejected)} == guilty
    assert {n for n, result in enumerate(results) if result is None} == set(range(5)) - guilty
    assert sorted(server.ids) == sorted(e.id for n, e in enumerate(sent) if n not in guilty)


async def test_what_is_too_large_together_goes_alone_and_alone_is_rejected(server):
    server.largest = 8 * 1024
    results = await deliver(server, [*batch(8), make(9, size=LARGEST)])
    assert results[:8] == [None] * 8
    assert isinstance(results[8], Rejected)
    assert "too large (413)" in str(results[8])


async def test_a_busy_collector_is_not_asked_again_in_the_same_batch(server):
    server.busy, server.more = 9, {"Retry-After": "42"}
    results = await deliver(server, batch(4, size=LARGEST), max_request="140KiB")
    assert [result.retry_after for result in results] == [42] * 4
    assert len(server.requests) == 1


async def test_one_bad_index_dooms_no_event(server):
    server.tokens[TOKEN].indexes = {"main"}
    [result] = await deliver(server, batch(1), index="maim")
    assert isinstance(result, Unavailable)
    assert "correct index" in str(result)


async def test_a_portal_that_says_200_to_everything_has_taken_nothing(server):
    server.canned = web.Response(text="<html>Welcome! Please log in</html>")
    [result] = await deliver(server, batch(1))
    assert "what answers is no HTTP Event Collector (200)" in str(result)


async def test_redirects_are_not_followed_with_the_token(server):
    server.canned = web.Response(status=307, headers={"Location": f"{server.url}/elsewhere"})
    [result] = await deliver(server, batch(1))
    assert isinstance(result, Unavailable)
    assert len(server.requests) == 1


async def test_an_answer_without_end_is_not_read_to_its_end(server):
    server.canned = web.Response(body=b" " * (5 * 1024 * 1024))
    [result] = await deliver(server, batch(1))
    assert isinstance(result, Unavailable)


async def test_a_token_in_a_file_is_read_again_when_it_changes(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("wrong")
    async with sink.open(configured(server.url, token={"file": str(file)}), PLACE) as send:
        [result] = await send(batch(1))
        assert str(result) == "it does not know the token (403: Invalid token)"
        file.write_text(TOKEN)
        assert list(await send(batch(1))) == [None]
        file.write_text("with\nline feed")
        with pytest.raises(Unavailable, match="characters that no token has"):
            raise (await send(batch(1)))[0]


async def test_it_goes_through_a_proxy():
    async with FarSide(http(200, {"code": 0})) as proxy:
        keys = {"proxy": proxy.url, "insecure": True}
        async with sink.open(configured("http://splunk.example:8088", **keys), PLACE) as send:
            assert list(await send(batch(1))) == [None]
    assert proxy.requests[0].target == "http://splunk.example:8088/services/collector/event"


async def test_tls_is_verified_unless_that_is_not_wanted(tmp_path):
    files = issue(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.server.certificate, files.server.key)
    async with splunk_server(context) as server:
        assert await deliver(server, batch(1), tls={"ca": str(files.authority)}) == [None]
        assert await deliver(server, batch(1), tls={"insecure": True}) == [None]
        [result] = await deliver(server, batch(1), tls={"ca": str(files.other_authority)})
        assert "its certificate is not accepted" in str(result)
        [result] = await deliver(server, batch(1))
        assert "its certificate is not accepted" in str(result)


async def test_a_collector_that_takes_part_and_falls_silent_has_taken_that_part(server):
    sent = batch(4, size=LARGEST)
    keys = {"max_request": "140KiB", "retry": {"timeout": "1s"}}
    async with sink.open(configured(server.url, **keys), PLACE) as send:
        task = asyncio.ensure_future(send(sent))
        while not server.events:
            await asyncio.sleep(0)
        server.stall()
        results = await task
    assert results[:2] == [None, None]
    assert [str(result) for result in results[2:]] == ["no answer within 0.9 s"] * 2


# Acknowledgements


@pytest.fixture
def slow(server):
    """It accepts, and indexes when the test says so."""
    server.tokens[TOKEN] = Token(acknowledges=True)
    server.indexed = False
    return server


ACKNOWLEDGE = {"acknowledge": True, "retry": {"timeout": "300ms"}}


async def test_accepted_is_not_delivered_until_it_is_indexed(slow):
    async with sink.open(configured(slow.url, acknowledge=True), PLACE) as send:
        task = asyncio.ensure_future(send(batch(3)))
        while len(slow.asked("/ack")) < 3:
            await asyncio.sleep(0.01)
        assert not task.done()
        slow.index()
        assert list(await task) == [None] * 3
    assert len(slow.asked("/event")) == 1


async def test_what_is_indexed_after_the_attempt_is_asked_for_and_not_sent_again(slow):
    async with sink.open(configured(slow.url, **ACKNOWLEDGE), PLACE) as send:
        results = await send(batch(2))
        assert [str(result) for result in results] == ["it is accepted, and not indexed yet"] * 2
        slow.index()
        assert list(await send(batch(2))) == [None] * 2
    assert slow.ids == [cloudevent.id for cloudevent in batch(2)]


async def test_what_is_never_indexed_is_sent_again_in_the_end(slow, monkeypatch):
    async with sink.open(configured(slow.url, **ACKNOWLEDGE), PLACE) as send:
        await send(batch(1))
        monkeypatch.setattr(delivery, "PATIENCE", 0.0)
        slow.indexed = True
        assert list(await send(batch(1))) == [None]
    assert len(slow.ids) == 2


async def test_each_channel_has_receipts_of_its_own(slow):
    slow.indexed = True
    channels = ["0d4b1f3a-0000-4000-8000-000000000000", "0d4b1f3a-0000-4000-8000-000000000001"]
    for channel in channels:
        assert await deliver(slow, batch(1), channel=channel, acknowledge=True) == [None]
    asked = [headers["X-Splunk-Request-Channel"] for _, headers, _ in slow.asked("/event")]
    assert asked == channels


async def test_a_token_that_does_not_acknowledge_is_found_out_before_anything_is_sent(server):
    with pytest.raises(Unavailable, match="the token does not acknowledge; turn that on"):
        await deliver(server, batch(1), acknowledge=True)
    assert server.events == []


async def test_receipts_that_cannot_be_asked_for_leave_it_open(slow):
    async with sink.open(configured(slow.url, acknowledge=True), PLACE) as send:
        task = asyncio.ensure_future(send(batch(1)))
        while not slow.events:
            await asyncio.sleep(0)
        slow.busy = 9
        [result] = await task
        assert "it cannot take it now (503: Server is busy)" in str(result)
        slow.busy = None
        slow.index()
        assert list(await send(batch(1))) == [None]
    assert len(slow.events) == 1


# Check


async def test_its_check_tries_the_token_and_publishes_nothing(slow):
    said = await sink.check(configured(slow.url, acknowledge=True, index="main"), PLACE)
    assert said == (
        f"reached {slow.url}, which takes the token and acknowledges; nothing was published; "
        "whether index main is open to it, the first event shows"
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
        await sink.check(configured(server.url, **keys), PLACE)


async def test_its_check_does_not_wait_for_ever(server):
    server.stall()
    with pytest.raises(Unavailable, match=r"no answer within 0\.18 s"):
        await sink.check(configured(server.url, retry={"timeout": "200ms"}), PLACE)
