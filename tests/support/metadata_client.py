"""A client of the metadata service for tests, and the server's answers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from support.canned_server import CannedServer

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


def chosen(*event_ids: str) -> Callable[[], Awaitable[Sequence[str]]]:
    """What to approve, as the client asks for it when the request can leave."""

    async def choose() -> Sequence[str]:
        return event_ids

    return choose


async def fetched(answer: bytes | None, **more: Any) -> Answer | SourceProblem:
    async with CannedServer(answer, **more) as server, client(server.url) as metadata:
        return await metadata.fetch()


async def reason(answer: bytes | None, **more: Any) -> str:
    problem = await fetched(answer, **more)
    assert isinstance(problem, SourceProblem), problem
    assert problem.detail.endswith((".", "…"))
    return problem.reason
