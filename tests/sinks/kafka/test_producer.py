"""What the producer needs of aiokafka."""

from aiokafka import AIOKafkaProducer


async def test_what_we_use_of_aiokafka_beyond_its_interface_is_there():
    """An upgrade that moves these must move `producer` and `connection` too."""
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    producer._closed = True
    assert producer._sender.sender_task is None
    assert callable(producer._sender._send_produce_req)
    assert not producer._message_accumulator._batches
    assert not producer._message_accumulator._pending_batches
    assert producer.client._sync_task is None
    assert producer.client._conns == {}
    assert callable(producer.client._md_synchronizer)
    assert callable(producer.client.bootstrap)
