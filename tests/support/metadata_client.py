"""A client of the metadata service for tests, and the server's answers."""

from typing import Any

from support.metadata_far_side import FarSide

from bridge.metadata.answers import Answer, SourceProblem
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata

EVENT: dict[str, Any] = {
    "EventId": "602d9444-D2CD-49c7-8624-8643e7171297",
    "EventType": "Reboot",
    "EventStatus": "Scheduled",
    "ResourceType": "VirtualMachine",
    "Resources": ["web_0"],
    "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
}
DOCUMENT = {"DocumentIncarnation": 5, "Events": [EVENT]}
QUIET = {"DocumentIncarnation": 6, "Events": []}


def client(endpoint: str, version: str = "2020-07-01", **options: Any) -> Metadata:
    """A client that the budget does not slow down, unless a test is about the budget."""
    return Metadata(endpoint, version, **{"budget": Budget(limit=10_000), **options})


async def fetched(answer: bytes | None, **far: Any) -> Answer | SourceProblem:
    async with FarSide(answer, **far) as side, client(side.url) as metadata:
        return await metadata.fetch()


async def reason(answer: bytes | None, **far: Any) -> str:
    problem = await fetched(answer, **far)
    assert isinstance(problem, SourceProblem), problem
    assert problem.detail.endswith((".", "…"))
    return problem.reason
