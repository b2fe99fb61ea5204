"""A question that aiokafka cannot ask (KIP-430): what may we do with a topic?"""

from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v5
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

_WRITE = 1 << 4
_NOT_SAID = -(2**31)
_TEXT = String("utf-8")
_BROKER = (("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT))
_PARTITION = (
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", Array(Int32)),
    ("isr", Array(Int32)),
    ("offline_replicas", Array(Int32)),
)
_TOPIC = (
    ("error_code", Int16),
    ("topic", _TEXT),
    ("is_internal", Boolean),
    ("partitions", Array(*_PARTITION)),
    ("authorized_operations", Int32),
)


class _Answer(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(*_BROKER)),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        ("topics", Array(*_TOPIC)),
        ("authorized_operations", Int32),
    )


class _Question(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", Array(_TEXT)),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class AskTopics(Request[MetadataRequest_v5 | _Question]):  # type: ignore[misc]
    """Makes no topics. A broker before 2.3 tells the rest, but not what we may do."""

    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        if request_struct_class is _Question:
            return _Question(self._topics, False, False, True)  # noqa: FBT003  as the wire has them
        return request_struct_class(self._topics, False)  # noqa: FBT003


def may_write(operations: list[int]) -> bool | None:
    """What the last field of a topic's answer says, if it has one; None when it does not say."""
    if not operations or operations[0] == _NOT_SAID:
        return None
    return bool(operations[0] & _WRITE)
