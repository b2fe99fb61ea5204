"""What a foreign client read, compared with what the bridge recorded; and the votes that it sends."""

import json
from collections.abc import Callable
from pathlib import Path

from support.bridge_process import Stage, posts
from support.foreign import Json
from support.until import until


def by_id(folder: Path) -> dict[str, Json]:
    """All CloudEvents that the bridge wrote into `events.jsonl`."""
    file = folder / "events.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {event["id"]: event for event in map(json.loads, lines)}


def about(event: str, kind: str) -> Callable[[Json], bool]:
    return lambda read: (
        (read.get("subject"), read.get("type"))
        == (
            event,
            f"azure.scheduledevents.{kind}.v1",
        )
    )


async def faithful(at: Stage, read: Json) -> None:
    """Compare it with what the bridge recorded; the file may get it a moment later."""
    await at.until(lambda: read["id"] in by_id(at.folder), "the CloudEvent in the file")
    same(read, by_id(at.folder)[read["id"]])


def same(read: Json, written: Json) -> None:
    """Assert that it is the same CloudEvent. In binary mode all attributes are text."""
    one, other = _plain(read), _plain(written)
    if "datacontenttype" not in one:  # the JavaScript SDK leaves it out on MQTT
        del other["datacontenttype"]
    assert one == other, {name for name in {**one, **other} if one.get(name) != other.get(name)}


def _plain(event: Json) -> Json:
    """The Go SDK adds attributes that say where in Kafka it was."""
    data = event["data"]
    attributes = {
        name: str(value)
        for name, value in event.items()
        if name != "data" and not name.startswith("kafka")
    }
    attributes["time"] = attributes["time"][:19]
    return {**attributes, "data": json.loads(data) if isinstance(data, str) else data}


def vote(event: str, **more: str) -> str:
    return json.dumps({"eventId": event, "approver": "orders", "resource": "vm-0", **more})


async def approved(at: Stage, event: str) -> None:
    """Wait until the bridge has told Azure."""
    await until(lambda: [event] in [post["eventIds"] for post in posts(at)], "the POST", at.output)
