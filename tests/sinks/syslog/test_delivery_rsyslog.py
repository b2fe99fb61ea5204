"""The syslog sink and a real rsyslog: what arrives, and what a restart of it does not lose."""

import asyncio
import json
import time
from uuid import uuid4

import pytest
from support.certificates import Certificates
from support.cloudevents import batch, make
from support.journal_tools import about, opened
from support.recording_sink import at_work
from support.rsyslog import Message, Rsyslog
from support.siem_events import of_kind
from support.siem_readers import read_cef, read_leef
from support.until import until

from bridge.common import supervise
from bridge.delivery.dispatcher import Dispatcher
from bridge.plugins import Place, Unavailable, class_id, open_format
from bridge.runtime.status import SinkStatus
from sinks.syslog import SyslogSettings, sink

PLACE = Place({"vm_name": "web-1"}, sink="siem")
FOR_EACH = {"keep_connected": False}
ABOUT_EVENTS = ("scheduled", "updated", "started", "completed", "canceled")
VOTES = ("approval.recorded", "approval.granted", "approval.refused", "approval.failed")
HOSTILE = 'a|b=c\\d\r\ne\tf^g CEF:0|x msg=y cs1=z \u2028] " %msg% \\n \U0001f692 end'
IN_CEF = 'a|b=c\\d\ne f^g CEF:0|x msg=y cs1=z \n] " %msg% \\n \U0001f692 end'
IN_LEEF = 'a b=c\\d e f g CEF:0 x msg=y cs1=z  ] " %msg% \\n \U0001f692 end'


class Sender:
    """Settings towards that rsyslog under a host name of their own, and what came from there."""

    def __init__(self, rsyslog: Rsyslog, scheme: str, certificates: Certificates, **keys) -> None:
        self.rsyslog, self.host = rsyslog, f"h{uuid4().hex}"
        tls = {"tls": {"ca": str(certificates.authority)}} if scheme == "tls" else {}
        given = {"type": "syslog", "address": rsyslog.address(scheme), "hostname": self.host}
        self.settings = SyslogSettings.model_validate(given | tls | keys)

    async def arrived(self, count: int) -> list[Message]:
        await until(lambda: len(self.rsyslog.messages(self.host)) >= count)
        return self.rsyslog.messages(self.host)

    async def deliver(self, cloudevents):
        async with sink.open(self.settings, PLACE) as send:
            return list(await send(cloudevents))


@pytest.mark.parametrize("form", ["cloudevents", "cef", "leef", "ecs"])
@pytest.mark.parametrize(
    ("scheme", "keys"),
    [
        ("udp", {"max_size": "8KiB"}),
        ("tcp", {}),
        ("tcp", {"framing": "newline"}),
        ("tls", {}),
        ("tls", FOR_EACH),
    ],
    ids=["udp", "tcp", "tcp in lines", "tls", "tls for each batch"],
)
async def test_every_format_arrives_byte_for_byte(rsyslog, certificates, scheme, keys, form):
    sent = [make(1), make(2, description="ä | = \\ ] \" \u2028 'x' %s", eventType="Freeze")]
    sender = Sender(rsyslog, scheme, certificates, format=form, **keys)
    assert await sender.deliver(sent) == [None, None]
    encode = open_format(sender.settings).encode
    assert [message.text for message in await sender.arrived(2)] == [encode(one) for one in sent]


async def test_independent_readers_find_every_field_of_hostile_events_in_the_file_of_rsyslog(
    rsyslog, certificates
):
    words = dict.fromkeys(("description", "detail", "approver", "reason"), HOSTILE)
    sent = [of_kind(kind, resources=["a", HOSTILE], **words) for kind in (*ABOUT_EVENTS, *VOTES)]
    found = {}
    for form in ("cloudevents", "cef", "leef"):
        sender = Sender(rsyslog, "tcp", certificates, format=form)
        assert await sender.deliver(sent) == [None] * len(sent)
        found[form] = [message.text for message in await sender.arrived(len(sent))]
    assert [json.loads(text) for text in found["cloudevents"]] == [one.envelope for one in sent]
    for cloudevent, in_cef, in_leef in zip(sent, found["cef"], found["leef"], strict=True):
        vote = ".approval." in cloudevent.type
        cef, (_, leef) = read_cef(in_cef), read_leef(in_leef)
        assert cef["DeviceEventClassID"] == class_id(cloudevent)
        assert (cef["msg"], cef["resources"]) == (IN_CEF, f"a,{IN_CEF}")
        assert (leef["msg"], leef["resources"]) == (IN_LEEF, f"a,{IN_LEEF}")
        assert (cef.get("suser"), cef.get("reason")) == ((IN_CEF, IN_CEF) if vote else (None, None))
        assert leef.get("usrName") == (IN_LEEF if vote else None)
        assert cef["cloudEventId"] == leef["cloudEventId"] == cloudevent.id


async def test_rsyslog_reads_the_header_as_we_meant_it(rsyslog, certificates):
    keys = {"facility": "local4", "app_name": "azse", "enterprise_id": 32473}
    sender = Sender(rsyslog, "tcp", certificates, **keys)
    await sender.deliver([make(eventType="Freeze")])
    [message] = await sender.arrived(1)
    assert message.priority == 20 * 8 + 4
    assert message.timestamp == "2026-11-15T18:14:48Z"
    assert (message.app_name, message.msgid) == ("azse", "azse.freeze.scheduled")
    assert message.data.startswith(f'[cloudevent@32473 id="{make().id}"')


async def test_what_rsyslog_had_not_read_when_it_was_killed_is_not_taken_for_delivered(
    rsyslog, certificates
):
    sender = Sender(rsyslog, "tcp", certificates, **FOR_EACH)
    async with sink.open(sender.settings, PLACE) as send:
        rsyslog.pause()
        sending = asyncio.ensure_future(send(batch(3)))
        await asyncio.wait({sending}, timeout=0.1)
        assert not sending.done()
        rsyslog.kill()
        with pytest.raises(Unavailable, match="it closed the connection"):
            await sending
    rsyslog.start()
    assert await sender.deliver(batch(3)) == [None] * 3
    await sender.arrived(3)


@pytest.fixture
def hurry(monkeypatch):
    """Waits between attempts are a hundred times shorter."""
    real = supervise.backoff
    monkeypatch.setattr(
        "bridge.delivery.backoff.backoff", lambda attempt, **keys: real(attempt, **keys) / 100
    )


async def test_a_restart_of_rsyslog_in_the_middle_of_a_stream_loses_nothing(
    rsyslog, certificates, tmp_path, hurry
):
    sender = Sender(rsyslog, "tls", certificates, **FOR_EACH)
    status = SinkStatus("syslog", required=True)
    async with opened(tmp_path / "journal.db", "siem") as journal:
        worker = Dispatcher("siem", sink, sender.settings, lambda: PLACE, journal, status)
        sent: list[str] = []
        async with at_work(worker):
            for number in range(16):
                news = [about(f"k{key}", number) for key in range(3)]
                await journal.append(news, time.time())
                sent += [one.id for one in news]
                if number == 8:
                    await asyncio.to_thread(rsyslog.stop)
                    await asyncio.to_thread(rsyslog.start)
            async with asyncio.timeout(20):
                await worker.drained()
    await until(lambda: {m.envelope["id"] for m in rsyslog.messages(sender.host)} == set(sent))
    first = list(dict.fromkeys(m.envelope["id"] for m in rsyslog.messages(sender.host)))
    for key in range(3):
        ours = [name for name in first if name.startswith(f"k{key}/")]
        assert ours == [f"k{key}/{number}" for number in range(16)]
