"""What every sink must do, done by syslog over TCP and TLS against a real rsyslog."""

from uuid import uuid4

import pytest
from support.rsyslog import Rsyslog
from support.sink_contract import Peer, SinkContract

from bridge.plugins import Place
from sinks.syslog import SyslogSettings, sink


class RsyslogPeer(Peer):
    """One process for all tests: each is another host to it."""

    place = Place({"vm_name": "web-1"}, sink="siem")

    def __init__(self, rsyslog: Rsyslog, **keys) -> None:
        self.rsyslog, self.host = rsyslog, uuid4().hex
        given = {"type": "syslog", "max_size": "80KiB", "hostname": self.host}
        self.settings = SyslogSettings.model_validate(given | keys)

    async def received(self):
        return [message.envelope for message in self.rsyslog.messages(self.host)]

    async def down(self):
        self.rsyslog.kill()

    async def up(self):
        self.rsyslog.start()

    async def stall(self):
        self.rsyslog.pause()

    async def release(self):
        self.rsyslog.resume()


class Syslog(SinkContract):
    plugin = sink
    cannot_reject = "a syslog receiver never answers"


class TestTcp(Syslog):
    @pytest.fixture
    async def peer(self, rsyslog):
        return RsyslogPeer(rsyslog, address=rsyslog.address("tcp"))


class TestTlsWithAConnectionForEachBatch(Syslog):
    @pytest.fixture
    async def peer(self, rsyslog, certificates):
        tls = {"ca": certificates.authority}
        address = rsyslog.address("tls")
        return RsyslogPeer(rsyslog, address=address, tls=tls, keep_connected=False)
