"""CloudEvents as HTTP requests: the CloudEvents HTTP protocol binding, and any format; pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bridge.plugins import CloudEvent, Format, Rejected

BATCH = "application/cloudevents-batch+json; charset=utf-8"
LARGEST_BATCH = 1024 * 1024
"""Bytes of a batch with more than one CloudEvent, at most."""


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """The body of one request, its headers, and the places of its CloudEvents in the batch."""

    id: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    places: tuple[int, ...]


Unsaid = dict[int, Rejected]
"""CloudEvents that the format cannot express."""


def messages(
    batch: Sequence[CloudEvent],
    mode: Literal["structured", "binary", "batch"],
    form: Format,
    size: int,
) -> tuple[list[HttpMessage], Unsaid]:
    if mode == "binary":
        return [_binary(place, cloudevent) for place, cloudevent in enumerate(batch)], {}
    if mode == "batch":
        parts = _parted(list(enumerate(batch)), size)
        return [_together(part) for part in parts], {}
    return _formatted(batch, form)


def alone(message: HttpMessage, batch: Sequence[CloudEvent]) -> list[HttpMessage]:
    """Put each CloudEvent of a batch into a batch of its own."""
    return [_together([(place, batch[place])]) for place in message.places]


def _formatted(batch: Sequence[CloudEvent], form: Format) -> tuple[list[HttpMessage], Unsaid]:
    made: list[HttpMessage] = []
    unsaid: Unsaid = {}
    for place, said in enumerate(form.encode_each(batch)):
        if isinstance(said, bytes):
            headers = {"Content-Type": form.content_type}
            made.append(HttpMessage(batch[place].id, headers, said, (place,)))
        else:
            unsaid[place] = said
    return made, unsaid


def _binary(place: int, cloudevent: CloudEvent) -> HttpMessage:
    # Imported here: the other modes start faster without it.
    from cloudevents.core.bindings import http  # noqa: PLC0415  only binary mode needs it
    from cloudevents.core.formats.json import JSONFormat  # noqa: PLC0415  only binary mode needs it
    from cloudevents.core.v1.event import CloudEvent as SdkEvent  # noqa: PLC0415  only binary mode needs it

    attributes = cloudevent.envelope
    data = attributes.pop("data")
    attributes["time"] = datetime.fromisoformat(attributes["time"])
    message = http.to_binary(SdkEvent(attributes, data), JSONFormat())
    return HttpMessage(cloudevent.id, message.headers, message.body, (place,))


def _together(part: Sequence[tuple[int, CloudEvent]]) -> HttpMessage:
    body = b"[%b]" % b",".join(cloudevent.body for _, cloudevent in part)
    return HttpMessage(
        part[0][1].id, {"Content-Type": BATCH}, body, tuple(place for place, _ in part)
    )


def _parted(
    batch: list[tuple[int, CloudEvent]], size: int
) -> Iterator[list[tuple[int, CloudEvent]]]:
    part: list[tuple[int, CloudEvent]] = []
    room = LARGEST_BATCH
    for place, cloudevent in batch:
        needed = len(cloudevent.body) + 1
        if part and (len(part) == size or needed > room):
            yield part
            part, room = [], LARGEST_BATCH
        part.append((place, cloudevent))
        room -= needed
    if part:
        yield part
