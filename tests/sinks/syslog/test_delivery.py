"""A batch to a syslog receiver: one connection or one for each, rejections, new certificates."""

import os
import shutil

import pytest
from support.cloudevents import make
from support.rsyslog_stand_in import receiving
from support.syslog_sending import FOR_EACH, PLACE, comes_to, configured, deliver, serving

from bridge.plugins import Rejected, Unavailable
from sinks.syslog import sink


async def test_one_connection_serves_many_batches():
    async with receiving() as receiver:
        async with sink.open(configured(receiver.address), PLACE) as send:
            for n in range(5):
                assert list(await send([make(n)])) == [None]
        await comes_to(receiver, 5)
        assert receiver.connections == 1


async def test_a_connection_for_each_batch_is_not_held_in_between():
    async with receiving() as receiver:
        async with sink.open(configured(receiver.address, **FOR_EACH), PLACE) as send:
            for n in range(3):
                await receiver.alone()
                assert list(await send([make(n)])) == [None]
                assert len(receiver.messages) == n + 1
        assert receiver.connections == 4  # the first one only looked whether it is there


async def test_what_is_too_large_is_rejected_and_its_neighbors_are_delivered():
    async with receiving() as receiver:
        results = await deliver(receiver.address, [make(1), make(2, size=9000), make(3)])
        assert [type(result) for result in results] == [type(None), Rejected, type(None)]
        await comes_to(receiver, 2)


async def test_with_nothing_to_send_nothing_is_sent():
    async with receiving() as receiver:
        [result] = await deliver(receiver.address, [make(2, size=9000)], **FOR_EACH)
        assert isinstance(result, Rejected)
        assert receiver.connections == 1


async def test_certificates_that_change_take_effect_with_the_next_batch(certificates, tmp_path):
    ca = tmp_path / "ca.crt"
    shutil.copy(certificates.authority, ca)
    async with receiving(context=serving(certificates)) as receiver:
        async with sink.open(configured(receiver.address, tls={"ca": str(ca)}), PLACE) as send:
            assert list(await send([make(1)])) == [None]
            ca.unlink()
            assert list(await send([make(2)])) == [None]  # half a rotation changes nothing
            assert receiver.connections == 1
            shutil.copy(certificates.authority, ca)
            os.utime(ca, (1, 1))
            assert list(await send([make(3)])) == [None]
            assert receiver.connections == 2
            shutil.copy(certificates.other_authority, ca)
            with pytest.raises(Unavailable, match="its certificate is not accepted"):
                await send([make(4)])
        assert len(receiver.messages) == 3
