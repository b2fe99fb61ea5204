"""A program of your own for each CloudEvent: fed on stdin, judged by its exit code."""

import asyncio
import shutil
import signal
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bridge.plugins import (
    CloudEvent,
    Delivered,
    Place,
    Rejected,
    Result,
    Send,
    SinkPlugin,
    Unavailable,
    open_format,
    plain_environment,
    write_duration,
)
from sinks.command.environment import variables
from sinks.command.process import KEPT, Ended, Task, run
from sinks.command.settings import CommandSettings

_LATER = 75
"""EX_TEMPFAIL of sysexits.h."""
_WORTH_HIDING = 6
"""What is shorter is no secret, and would make holes in every word."""


def judge(ended: Ended, settings: CommandSettings, hidden: Sequence[str] = ()) -> Result:
    """What an exit code means, with the end of the output, in which *hidden* is not shown."""
    output = _without(hidden, ended).strip()
    said = f": {output}" if output else ""
    code, approves = ended.code, settings.then == "approve"
    if code == 0:
        return Delivered(output or None, approves) if output or approves else None
    if code is None:
        limit = write_duration(settings.timeout)
        return Unavailable(f"it ran for longer than {limit} and was stopped{said}")
    if code < 0:
        return Unavailable(f"it was ended by {_signal(-code)}{said}")
    if code == _LATER:
        return Unavailable(f"it asks for another time (exit code {_LATER}){said}")
    return Rejected(f"exit code {code}{said}")


def _without(hidden: Sequence[str], ended: Ended) -> str:
    output = ended.output.decode("utf-8", "replace")
    for text in sorted(hidden, key=len, reverse=True):
        output = output.replace(text, "***")
    if len(ended.output) < KEPT:
        return output
    # What is kept may begin in the middle of one.
    ends = (text[-size:] for text in hidden for size in range(2, min(len(text), KEPT)))
    half = max((end for end in ends if output.startswith(end)), key=len, default="")
    return f"***{output[len(half) :]}" if half else output


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _surroundings(settings: CommandSettings) -> dict[str, str]:
    """What is the same for every run; files are read again, for they may have changed."""
    try:
        own = {name: secret.get() for name, secret in settings.env.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"env: cannot read a file: {error}") from error
    for name, text in own.items():
        if "\0" in text:
            raise Unavailable(f"env: {name} holds a NUL character")
    return {**plain_environment(), **own}


def _program(settings: CommandSettings, env: Mapping[str, str]) -> str:
    """Where the program is, or what an operator has to mend."""
    name = settings.argv[0]
    if not Path(settings.cwd).is_dir():
        raise Unavailable(f"cwd: {settings.cwd} is not a directory")
    if found := shutil.which(name, path=env.get("PATH", "")):
        return found
    if not Path(name).is_absolute():
        raise Unavailable(f"argv: there is no program {name} on PATH ({env.get('PATH', '')})")
    if not Path(name).exists():
        raise Unavailable(f"argv: there is no {name}")
    raise Unavailable(f"argv: {name} is not a program that may be run by this user")


@asynccontextmanager
async def _open(settings: CommandSettings, _place: Place) -> AsyncGenerator[Send]:
    _program(settings, _surroundings(settings))
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
        env = _surroundings(settings)
        argv = [_program(settings, env), *settings.argv[1:]]
        env |= variables(cloudevent, time.time())
        ended = await run(Task(argv, body, env, settings.cwd), settings.timeout)
    except Unavailable as error:
        return error
    except OSError as error:
        return Unavailable(f"{settings.argv[0]} cannot be run: {error.strerror or error}")
    hidden = [env[name] for name in settings.env if len(env[name]) >= _WORTH_HIDING]
    return judge(ended, settings, hidden)


async def _check(settings: CommandSettings, _place: Place) -> str:
    found = _program(settings, _surroundings(settings))
    return f"{found} is there and may be run"


sink = SinkPlugin(settings=CommandSettings, open=_open, check=_check)
