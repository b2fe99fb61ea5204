"""Delivers a batch: one run for each CloudEvent, `concurrency` at a time, one result for each."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from bridge.plugins import CloudEvent, Place, Rejected, Result, Send, Unavailable, open_format
from sinks.command.environment import base_environment, variables
from sinks.command.errors import judge, not_started
from sinks.command.process import Task, find_program, run
from sinks.command.settings import CommandSettings

_WORTH_HIDING = 6
"""Shorter values are not hidden: hiding them would make holes in ordinary words."""


@asynccontextmanager
async def open_sink(settings: CommandSettings, _place: Place) -> AsyncGenerator[Send]:
    """Raises `Unavailable` when the program does not exist."""
    find_program(settings, base_environment(settings))
    form, room = open_format(settings), asyncio.Semaphore(settings.concurrency)

    async def one(cloudevent: CloudEvent, body: bytes | Rejected) -> Result:
        if isinstance(body, Rejected):
            return body
        async with room:
            return await _attempt(settings, cloudevent, body)

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        pairs = zip(batch, form.encode_each(batch), strict=True)
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(one(*pair)) for pair in pairs]
        return [each.result() for each in runs]

    yield send


async def _attempt(settings: CommandSettings, cloudevent: CloudEvent, body: bytes) -> Result:
    try:
        env = base_environment(settings)
        argv = [find_program(settings, env), *settings.argv[1:]]
        env |= variables(cloudevent, time.time())
        ended = await run(Task(argv, body, env, settings.cwd), settings.timeout)
    except Unavailable as error:
        return error
    except OSError as error:
        return not_started(error, settings.argv[0])
    hidden = [env[name] for name in settings.env if len(env[name]) >= _WORTH_HIDING]
    return judge(ended, settings, hidden)
