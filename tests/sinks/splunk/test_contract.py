"""What every sink must do, done by the Splunk sink, with and without acknowledgments."""

from typing import ClassVar

import pytest
from support.sink_contract import FailingPeer, SinkContract
from support.splunk_server import TOKEN, SplunkServer, Token, splunk_server

from bridge.plugins import Place
from sinks.splunk import SplunkSettings, sink


class SplunkPeer(FailingPeer):
    place = Place({"vm_id": "vm-1"}, sink="siem")

    def __init__(self, server: SplunkServer, **keys) -> None:
        self.network = server
        given = {"type": "splunk", "url": server.url, "token": TOKEN}
        self.settings = SplunkSettings.model_validate(given | keys)

    async def received(self):
        return [event["event"] for event in self.network.events]

    async def refuse(self, ids):
        self.network.refused |= ids


class Splunk(SinkContract):
    plugin = sink
    keys: ClassVar[dict] = {}

    @pytest.fixture
    async def peer(self):
        async with splunk_server() as server:
            server.tokens[TOKEN] = Token(acknowledges=True)
            yield SplunkPeer(server, **self.keys)


class TestAccepted(Splunk):
    pass


class TestIndexed(Splunk):
    keys: ClassVar[dict] = {"acknowledge": True}
