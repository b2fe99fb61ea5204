"""How large a record a topic takes, for the sentence that says that one is too large."""

from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DescribeConfigsRequest

KEY = "max.message.bytes"
_TOPIC = 2


async def largest_record(client: Any, topic: str) -> int | None:
    """Bytes; None when the broker does not tell us."""
    request = DescribeConfigsRequest([(_TOPIC, topic, [KEY])])
    try:
        answer = await client.send(client.get_random_node(), request)
        [(_, _, _, _, entries)] = answer.resources
        return next((int(value) for name, value, *_ in entries if name == KEY), None)
    except (KafkaError, ValueError, TypeError):
        return None
