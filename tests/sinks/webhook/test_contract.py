"""A webhook does what every sink does, in each of its modes."""

from typing import ClassVar

import pytest
from support.sink_contract import SinkContract
from support.webhook_receiver import WebhookPeer, receiving

from sinks.webhook import sink


class WebhookContract(SinkContract):
    plugin = sink
    keys: ClassVar[dict[str, str]] = {}

    @pytest.fixture
    async def peer(self):
        async with receiving() as receiver:
            yield WebhookPeer(receiver, **self.keys)


class TestSigned(WebhookContract):
    keys: ClassVar = {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


class TestBinary(WebhookContract):
    keys: ClassVar = {"mode": "binary"}


class TestBatch(WebhookContract):
    keys: ClassVar = {"mode": "batch"}
