"""What `seb check --connect` proves of a syslog receiver, and that it sends nothing."""

import pytest
from support.ports import free_ports
from support.results import proved
from support.rsyslog_stand_in import receiving
from support.syslog_sending import PLACE, configured, serving

from bridge.plugins import Unavailable
from sinks.syslog import sink


async def test_a_receiver_that_is_reached_gets_nothing():
    async with receiving() as receiver:
        said = await proved(sink, configured(receiver.address), PLACE)
        assert said == f"reached {receiver.address}; nothing was sent"
        await receiver.alone()
        assert receiver.messages == []
        assert receiver.connections == 1


async def test_over_tls_the_version_is_reported(certificates):
    async with receiving(context=serving(certificates)) as receiver:
        tls = {"ca": str(certificates.authority)}
        said = await proved(sink, configured(receiver.address, tls=tls), PLACE)
    assert said == f"reached {receiver.address} over TLSv1.3; nothing was sent"


async def test_a_receiver_that_is_not_there_is_named_with_the_reason():
    address = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(Unavailable, match=f"^{address}: nothing listens there$"):
        await proved(sink, configured(address), PLACE)
