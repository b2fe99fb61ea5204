"""How fast the webhook sink posts, beside aiohttp alone doing the same.

Both post the same bodies to the same receiver, which answers 204, with as many requests at the same
time and connections that are used again. The receiver is a process of its own.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import aiohttp

from bridge.plugins import CloudEvent, Place
from sinks.webhook import WebhookSettings, sink

AIM = 1.5
BATCH = 64
AT_ONCE = 8
BODY = '{"specversion":"1.0","id":"%d","partitionkey":"%d","data":{"description":"%s"}}'
TYPE = "application/cloudevents+json; charset=utf-8"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RECEIVER = """
import asyncio, sys
from aiohttp import web

async def take(request):
    await request.read()
    return web.Response(status=204)

async def main():
    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
Way = Callable[[str, Sequence[CloudEvent]], Awaitable[float]]


@contextlib.asynccontextmanager
async def receiver() -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RECEIVER, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def cloudevents(count: int, size: int) -> list[CloudEvent]:
    kind = "azure.scheduledevents.scheduled.v1"
    bodies = ((BODY % (n, n, "x" * size)).encode() for n in range(count))
    return [CloudEvent(str(n), kind, str(n), body) for n, body in enumerate(bodies)]


async def bare(url: str, events: Sequence[CloudEvent]) -> float:
    """Seconds that aiohttp alone takes."""
    waiting = iter(events)
    async with aiohttp.ClientSession() as http:

        async def work() -> None:
            for each in waiting:
                headers = {"Content-Type": TYPE}
                async with http.post(url, data=each.body, headers=headers) as answer:
                    if answer.status != 204:
                        sys.exit(f"the receiver answered {answer.status}")

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return time.perf_counter() - began


def ours(**keys: str) -> Way:
    async def post(url: str, events: Sequence[CloudEvent]) -> float:
        """Seconds that the sink takes, in batches as the bridge hands them to it."""
        given = {"type": "webhook", "url": url, "concurrency": AT_ONCE, **keys}
        async with sink.open(WebhookSettings.model_validate(given), Place()) as send:
            began = time.perf_counter()
            for place in range(0, len(events), BATCH):
                results = await send(events[place : place + BATCH])
                if any(result is not None for result in results):
                    sys.exit(f"the sink did not deliver: {results[0]}")
            return time.perf_counter() - began

    return post


WAYS: dict[str, Way] = {
    "aiohttp alone": bare,
    "sink": ours(),
    "sink, signed": ours(secret=KEY),
    "sink, batches": ours(mode="batch"),
}


async def compare(runs: int, count: int, size: int) -> dict[str, float]:
    """Alternate, so that what else the machine does burdens all; the first round is warm-up."""
    events = cloudevents(count, size)
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    async with receiver() as url:
        for _ in range(runs + 1):
            for name, way in WAYS.items():
                taken[name].append(await way(url, events))
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each, alternating (5)")
    parser.add_argument("--count", type=int, default=1920, help="CloudEvents in a run (1920)")
    parser.add_argument("--size", type=int, default=1000, help="bytes of data, about (1000)")
    given = parser.parse_args()
    print(f"medians of {given.runs} runs of {given.count}, {AT_ONCE} requests at the same time")
    medians = asyncio.run(compare(given.runs, given.count, given.size))
    alone = medians["aiohttp alone"]
    print(f"{'':16}{'CloudEvents/s':>14}{'time':>8}{'aim':>8}")
    for name, seconds in medians.items():
        aim = "" if name == "aiohttp alone" else f"{AIM}x"
        print(f"{name:16}{given.count / seconds:>14.0f}{seconds / alone:>7.2f}x{aim:>8}")


if __name__ == "__main__":
    main()
