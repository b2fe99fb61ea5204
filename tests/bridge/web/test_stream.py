import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest
from support.cloudevents import HOSTILE, make
from support.served_bridge import bridge, config
from support.until import until

from bridge.core.cloudevent import CloudEvent
from bridge.web.stream import Cursor, SharedBatches, Streams, encode


@pytest.fixture
def limits(monkeypatch):
    """Streams of the next bridge, with short timeouts."""
    made = Streams(most=2, heartbeat=0.05, patience=0.2)
    monkeypatch.setattr("bridge.web.server._streams", lambda _: made)
    return made


@pytest.fixture
async def running(tmp_path, limits):
    async with bridge(config(tmp_path)) as made:
        yield made


class Reader:
    """What an EventSource makes of the bytes."""

    def __init__(self, answer):
        self.answer = answer
        self.heartbeats = 0

    async def next(self):
        """The id and the data of the next CloudEvent."""
        fields: dict[str, str] = {}
        while True:
            line = await asyncio.wait_for(self.answer.content.readline(), 10)
            assert line.endswith(b"\n"), "the stream has ended"
            text = line[:-1].decode()
            if text.startswith(":"):
                self.heartbeats += 1
            elif text:
                name, _, value = text.partition(": ")
                fields[name] = fields[name] + "\n" + value if name in fields else value
            elif "data" in fields and fields.get("event") != "connected":
                return fields["id"], json.loads(fields["data"])
            else:
                fields = {}

    async def ended(self):
        async with asyncio.timeout(10):
            while await self.answer.content.readline():
                pass
        return True


@asynccontextmanager
async def listening(running, last=None, side=None):
    side = side or running.http
    headers = {"Last-Event-ID": last} if last is not None else {}
    async with side.session.get(f"{side.base}/api/v1/stream", headers=headers) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        yield Reader(answer)


async def record(running, *numbers, **more):
    made = [make(n, **more) for n in numbers]
    await running.journal.append(made, 1.0)
    return [one.id for one in made]


async def test_readers_get_cloudevents_in_order(running):
    await record(running, 1)
    async with listening(running) as reader:
        ids = await record(running, 2, 3)
        assert [(await reader.next())[0], (await reader.next())[0]] == ids


async def test_the_data_is_the_cloudevent_with_any_content(running):
    async with listening(running) as reader:
        (event_id,) = await record(running, 1, description=HOSTILE)
        heard, envelope = await reader.next()
        assert heard == envelope["id"] == event_id
        assert envelope["data"]["description"] == HOSTILE


async def test_a_reader_resumes_after_the_last_it_had(running):
    ids = await record(running, 1, 2, 3)
    async with listening(running, last=ids[0]) as reader:
        assert [(await reader.next())[0] for _ in range(2)] == ids[1:]


@pytest.mark.parametrize("before", [(), (1, 2)], ids=["an empty journal", "a journal"])
async def test_a_reader_that_received_nothing_can_still_resume(running, before):
    await record(running, *before)
    async with listening(running) as reader:
        greeting = [await reader.answer.content.readline() for _ in range(5)]
    assert greeting[1] + greeting[3] + greeting[4] == b"event: connected\ndata: {}\n\n"
    last = greeting[2].decode().removeprefix("id: ").strip()
    missed = await record(running, 3)
    async with listening(running, last=last) as reader:
        assert (await reader.next())[0] == missed[0]


async def test_a_reader_whose_last_id_is_gone_gets_everything(running):
    ids = await record(running, *range(1, 60))
    async with listening(running, last="forgotten long ago") as reader:
        assert [(await reader.next())[0] for _ in ids] == ids


async def test_the_control_socket_has_the_stream_too(running):
    async with listening(running, side=running.control) as reader:
        ids = await record(running, 1)
        assert (await reader.next())[0] == ids[0]


async def test_a_quiet_stream_has_a_heartbeat(running):
    async with listening(running) as reader:
        waiting = asyncio.create_task(reader.next())
        await until(lambda: reader.heartbeats >= 2)
        ids = await record(running, 1)
        assert (await waiting)[0] == ids[0]


async def test_the_number_of_streams_is_limited(running):
    third = running.http.session.get(f"{running.http.base}/api/v1/stream")
    async with listening(running), listening(running), third as answer:
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "10"
        assert "2 streams" in (await answer.json(content_type=None))["detail"]


async def test_a_reader_that_leaves_makes_room(running, limits):
    limits.heartbeat = 1000.0
    for _ in range(6):
        async with listening(running):
            pass
        await until(lambda: limits.count < 2)
    await until(lambda: limits.count == 0)
    async with listening(running):
        await until(lambda: len(limits._open) == 1)


async def test_a_reader_that_does_not_read_is_disconnected_and_delays_no_other(
    running, limits, caplog
):
    at = running.served.http
    slow, writer = await asyncio.open_connection(at.host, at.port, limit=1024)
    writer.write(f"GET /api/v1/stream HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
    await slow.readuntil(b"\r\n\r\n")
    async with listening(running) as reader:
        count = 400

        async def read_all() -> None:
            for _ in range(count):
                await reader.next()

        reading = asyncio.create_task(read_all())
        for first in range(0, count, 50):
            await record(running, *range(first, first + 50), size=60_000)
        await reading
        await until(lambda: limits.count == 1)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    assert "http.failed" not in caplog.text


async def test_streams_end_when_the_bridge_stops(tmp_path, limits):
    async with bridge(config(tmp_path)) as running, listening(running) as reader:
        limits.close()
        assert await reader.ended()
        async with running.http.session.get(f"{running.http.base}/api/v1/stream") as answer:
            assert answer.status == 503


async def test_a_stream_continues_after_the_journal_is_replaced(running):
    async with listening(running) as reader:
        first = await record(running, 1)
        assert (await reader.next())[0] == first[0]
        await running.journal.claim("this VM")
        await running.journal.claim("another VM")
        assert running.journal.generation == 1
        again = await record(running, 2)
        assert (await reader.next())[0] == again[0]


async def test_a_stream_continues_while_the_journal_cannot_be_written_and_after(running):
    async with listening(running) as reader:
        before = await record(running, 1)
        assert (await reader.next())[0] == before[0]
        await running.journal._in_thread(lambda: running.journal._fall_back("the disk is full"))
        during = await record(running, 2)
        heard = [(await reader.next())[0]]
        while heard[-1] != during[0]:
            heard.append((await reader.next())[0])
        assert await running.journal.repair()
        after = await record(running, 3)
        while heard[-1] != after[0]:
            heard.append((await reader.next())[0])
        assert set(heard) <= {*before, *during, *after}


def test_a_body_of_several_lines_is_several_lines_of_data():
    event = CloudEvent("1", "t", "k", b'{\n"a":\r\n1}')
    assert encode(event) == b'id: 1\ndata: {\ndata: "a":\ndata: 1}\n\n'


@pytest.mark.parametrize("last", [b"\xff", b"\xed\xa0\x80", b"caf\xe9"])
async def test_a_last_id_that_is_not_text_is_one_that_the_journal_does_not_have(running, last):
    [first] = await record(running, 1)
    at = running.served.http
    reader, writer = await asyncio.open_connection(at.host, at.port)
    head = f"GET /api/v1/stream HTTP/1.1\r\nHost: {at}\r\nLast-Event-ID: ".encode()
    writer.write(head + last + b"\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert b"id: " + first.encode() in await reader.readuntil(b'data: {"')
    writer.close()


async def test_strays_are_streamed_to_those_who_ask_for_them_and_move_no_position(running):
    url = f"{running.http.base}/api/v1/stream"
    session, refusals = running.http.session, running.runtime.status.refusals
    refusals.add(make(8), stray=True)
    async with session.get(f"{url}?strays=true") as asked, session.get(url) as plain:
        refusals.add(make(7), stray=False)
        refusals.add(make(9), stray=True)
        running.journal.announce()
        lines = [await asked.content.readline() for _ in range(8)]
        assert lines[5] == b"event: stray\n"
        told = json.loads(lines[6].removeprefix(b"data: "))
        assert (told["id"], told["stray"]) == (make(9).id, True)
        [first] = await record(running, 1)
        assert (await Reader(asked).next())[0] == first
        assert (await Reader(plain).next())[0] == first


async def test_a_proxy_is_told_not_to_keep_a_stream(running):
    async with running.http.session.get(f"{running.http.base}/api/v1/stream") as answer:
        assert answer.headers["X-Accel-Buffering"] == "no"


async def test_a_stream_ends_with_the_token_of_its_reader(tmp_path, limits):
    async with bridge(config(tmp_path, tokens=["one", "two"])) as running:
        side, url = running.http, f"{running.http.base}/api/v1/stream"
        async with side.session.get(url, headers={"Authorization": "Bearer one"}) as answer:
            http = config(tmp_path, tokens=["three", "two"]).http
            running.runtime.configure(running.runtime.config.model_copy(update={"http": http}))
            assert await Reader(answer).ended()
        async with side.session.get(url, headers={"Authorization": "Bearer two"}) as answer:
            await record(running, 1)
            assert await Reader(answer).next()


async def test_asking_for_strays_is_yes_or_no(running):
    assert (await running.http.ask("GET", "/api/v1/stream?strays=perhaps"))[0] == 400


async def test_a_batch_is_read_once_for_all_readers_at_the_same_place(running):
    ids = await record(running, *range(30))
    batches = SharedBatches()
    cursors = [Cursor(running.journal, batches) for _ in range(5)]
    for cursor in cursors:
        await cursor.begin("0")
    for count in (1, 2):
        texts = {await cursor.next() for cursor in cursors}
        assert (len(texts), batches.reads) == (1, count)
    assert ids[-1].encode() in texts.pop()
