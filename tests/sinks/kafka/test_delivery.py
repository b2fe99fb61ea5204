"""The Kafka sink before it meets a broker: how long it waits, and as whom it comes."""

import pytest
from support.ports import free_ports
from support.sink_settings import kafka as configured

from bridge.plugins import Place, Unavailable
from sinks.kafka.delivery import make_connector, open_sink

PLACE = Place({"vm_id": "vm-1"}, sink="bus")


def test_one_request_ends_before_the_batch_does_and_the_batch_before_the_bridge_stops_waiting():
    connector = make_connector(configured(retry={"timeout": "10s"}), PLACE)
    assert connector.patience == pytest.approx(7.2)
    assert (connector.client_id, connector.servers) == ("seb-vm-1-sink-bus", [("127.0.0.1", 9092)])


async def test_a_cluster_that_is_not_there_is_named_with_the_reason():
    server = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(Unavailable, match=f"^{server}: nothing listens there$"):
        async with open_sink(configured(bootstrap_servers=[server]), PLACE):
            pass


async def test_a_name_in_the_topic_that_is_not_known_yet_keeps_it_out():
    with pytest.raises(Unavailable, match=r"\{location\} is not known yet"):
        async with open_sink(configured(topic="se.{location}"), PLACE):
            pass
