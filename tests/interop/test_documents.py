"""Documents of the metadata service as other projects recorded them, through model, diff and a live bridge."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from support.bridge_process import stage
from support.canned_server import CannedServer, Request, http
from support.foreign import Json
from support.foreign_events import by_id
from support.world import World

from bridge.common import schemas
from bridge.core.model import MalformedDocument, parse_document

DOCUMENTS: dict[str, Json] = json.loads(
    Path(__file__).with_name("documents.json").read_text(encoding="utf-8")
)
REFUSED = {"14-rust-no-status": "EventStatus", "19-gameserver-no-incarnation": "EventId"}
READ = sorted(DOCUMENTS.keys() - REFUSED.keys())
ENDED = {"completed", "canceled"}
VERSION = "2020-07-01"
CHECK = jsonschema_rs.validator_for(schemas.schema("scheduled-event"), validate_formats=True)


def announced(document: Json) -> dict[str, str]:
    """What a bridge that first sees it announces: the status of each event that has not ended."""
    events = [one for one in document["Events"] if one["EventStatus"].casefold() not in ENDED]
    return {one["EventId"].upper(): one["EventStatus"] for one in events}


@pytest.mark.parametrize("name", READ)
def test_model_and_diff_read_it(name: str):
    document = DOCUMENTS[name]["document"]
    parsed = parse_document(document, api_version=VERSION)
    assert len(parsed.events) == len(document["Events"])
    world = World(scope="all", vm_name=None)
    found = world.see(*parsed.events)
    assert {one.event.key: one.event.status for one in found} == announced(document)
    assert world.see(*parsed.events) == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_document_without_what_is_needed_is_refused_as_a_whole(name: str):
    with pytest.raises(MalformedDocument, match=REFUSED[name]):
        parse_document(DOCUMENTS[name]["document"], api_version=VERSION)


def serves(document: Json):
    async def answer(request: Request) -> bytes:
        known = "/scheduledevents" in request.target
        return http(200, document) if known else http(404, b"")

    return answer


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_a_live_bridge_publishes_what_it_says_or_says_what_is_wrong(
    tmp_path: Path, name: str, proves
):
    document = DOCUMENTS[name]["document"]
    proves(
        "Documents",
        DOCUMENTS[name]["source"],
        name[:2],
        "is refused, with the reason" if name in REFUSED else "is read",
    )
    file = {"type": "file", "path": str(tmp_path / "events.jsonl")}
    async with (
        CannedServer(handler=serves(document)) as server,
        stage(tmp_path, sinks={"file": file}, quick=True) as at,
    ):
        at.configure(source={"endpoint": server.url, "scope": "all", "vm_name": "my-vm"})
        code = await at.once()
        said = at.output()
    told = [one for one in by_id(tmp_path).values() if "scheduled-event:" in one["dataschema"]]
    if name in REFUSED:
        assert told == []
        assert (code, REFUSED[name] in said) == (1, True), said
        return
    assert code == 0, said
    assert {one["data"]["eventId"]: one["data"]["status"] for one in told} == announced(document)
    for one in told:
        CHECK.validate(one["data"])
