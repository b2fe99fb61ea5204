"""A CloudEvent as a Kafka record: the CloudEvents Kafka protocol binding, and any format; pure."""

from typing import Literal, NamedTuple

from bridge.plugins import CloudEvent, Format

STRUCTURED = b"application/cloudevents+json; charset=UTF-8"
_HEADER = {"datacontenttype": "content-type"}
"""The only attribute whose header is not its name after `ce_`."""
_OVERHEAD = 128
"""The most bytes that record and batch headers add, without compression."""


class Record(NamedTuple):
    """A record to send; its key keeps all CloudEvents of a scheduled event in one partition."""

    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]

    @property
    def size(self) -> int:
        """The approximate size, in bytes."""
        headers = sum(len(name.encode()) + len(value) + 4 for name, value in self.headers)
        return len(self.key) + len(self.value or b"") + headers + _OVERHEAD


def encode(cloudevent: CloudEvent, mode: Literal["binary", "structured"]) -> Record:
    return _binary(cloudevent) if mode == "binary" else _structured(cloudevent)


def states(cloudevent: CloudEvent, mode: Literal["binary", "structured"]) -> list[Record]:
    """What it changes in the present state, under `EVENTID/observer`; an end is a tombstone.

    Only this bridge writes these keys: other observers of the event have keys of their own.
    """
    if not cloudevent.present:
        return []
    observer = cloudevent.attributes["observer"]
    return [
        Record(f"{subject}/{observer}".encode(), None, [])
        if latest is None
        else encode(latest, mode)._replace(key=f"{subject}/{observer}".encode())
        for subject, latest in cloudevent.present
    ]


def encode_as(cloudevent: CloudEvent, form: Format) -> Record:
    """In another format, with the same key. Raises `Rejected` when the format cannot express it."""
    content_type = [("content-type", form.content_type.encode())]
    return Record(cloudevent.key.encode(), form.encode(cloudevent), content_type)


def _structured(cloudevent: CloudEvent) -> Record:
    """The body already is the structured form, with the same bytes on every transport."""
    return Record(cloudevent.key.encode(), cloudevent.body, [("content-type", STRUCTURED)])


def _binary(cloudevent: CloudEvent) -> Record:
    attributes, data = cloudevent.parts
    headers = [
        (_HEADER.get(name, f"ce_{name}"), str(value).encode()) for name, value in attributes.items()
    ]
    return Record(cloudevent.key.encode(), data, headers)
