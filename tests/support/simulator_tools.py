from datetime import UTC, datetime, timedelta

import aiohttp

from bridge.simulator import Scenario, Simulator, World

START = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
HEADERS = {"Metadata": "true"}


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def at(self, world: World, seconds: float) -> None:
        """Move to that many seconds after the start, and let the world follow."""
        goal = START + timedelta(seconds=seconds)
        while (due := world.agenda.next()) is not None and due <= goal:
            self.now = max(self.now, due)
            world.advance()
        self.now = goal


def make_world(*, speed: float = 1.0, seed: int = 0, **scenario) -> tuple[World, Clock]:
    clock = Clock()
    return World(Scenario.model_validate(scenario), speed=speed, seed=seed, clock=clock), clock


def whats(records) -> list[str]:
    return [record["what"] for record in records]


def events_url(endpoint: str, api_version: str = "2020-07-01") -> str:
    return f"{endpoint}/metadata/scheduledevents?api-version={api_version}"


async def get_document(
    http: aiohttp.ClientSession, endpoint: str, api_version: str = "2020-07-01"
) -> dict:
    async with http.get(events_url(endpoint, api_version), headers=HEADERS) as response:
        assert response.status == 200
        return await response.json()


async def post_approval(
    http: aiohttp.ClientSession, endpoint: str, *event_ids: str, api_version="2020-07-01", **more
) -> int:
    body = {"StartRequests": [{"EventId": event_id} for event_id in event_ids], **more}
    url = events_url(endpoint, api_version)
    async with http.post(url, headers=HEADERS, json=body) as response:
        return response.status


async def ask(http: aiohttp.ClientSession, simulator: Simulator):
    """The status, the headers and the body of the answer, redirects included."""
    url = events_url(simulator.endpoint)
    async with http.get(url, headers=HEADERS, allow_redirects=False) as response:
        return response.status, response.headers, await response.read()
