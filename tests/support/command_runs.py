"""The command sink as its tests use it: settings for a program or a script, and its result."""

import asyncio
from typing import Any

from support.cloudevents import make

from bridge.plugins import CloudEvent, Place, Result, SinkSettings
from bridge.plugins.sinks import find_sink

plugin = find_sink("command")


def command(*argv: str, **keys: Any) -> SinkSettings:
    return plugin.settings.model_validate({"type": "command", "argv": list(argv), **keys})


def shell(script: str, **keys: Any) -> SinkSettings:
    return command("/bin/sh", "-c", script, **keys)


async def outcomes(settings: SinkSettings, *cloudevents: CloudEvent) -> list[Result]:
    async with asyncio.timeout(20), plugin.open(settings, Place()) as send:
        return list(await send(cloudevents))


async def outcome(settings: SinkSettings) -> Result:
    """The result for one typical CloudEvent."""
    [result] = await outcomes(settings, make())
    return result
