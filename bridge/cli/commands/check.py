"""`seb check`: prints what a configuration will do; `--connect` also tests that it works."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from bridge.common.supervise import attempt
from bridge.config import Config, ConfigError, load
from bridge.config.describe import describe
from bridge.core.model import Instance
from bridge.metadata.answers import SourceProblem
from bridge.metadata.client import Metadata
from bridge.metadata.discovery import NOT_FOUND, discover
from bridge.plugins import Place, SinkSettings, Unavailable
from bridge.plugins.sinks import find_sink
from bridge.runtime.identity import place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the configuration")
    parser.add_argument(
        "--connect", action="store_true", help="also connect to the endpoint and to every sink"
    )


def run(args: argparse.Namespace) -> int:
    """Print sentences. Return 78 if the file is invalid, 1 if something cannot be reached."""
    try:
        config = load(args.config, os.environ)
    except ConfigError as error:
        for problem in error.problems:
            print(f"seb: {problem}", file=sys.stderr)
        return 78
    for sentence in describe(config):
        print(sentence)
    return asyncio.run(_connect(config)) if args.connect else 0


async def _connect(config: Config) -> int:
    failed = False
    async for good, sentence in _prove(config):
        print(f"{'ok    ' if good else 'FAILED'}  {sentence}")
        failed = failed or not good
    return 1 if failed else 0


async def _prove(config: Config) -> AsyncIterator[tuple[bool, str]]:
    instance = Instance()
    configured = config.source.endpoint
    found, attempts = await discover(
        config.source.api_version, configured=None if configured == "auto" else configured
    )
    if found is None:
        yield False, f"{NOT_FOUND} If it is elsewhere, set source.endpoint"
    for one in attempts:
        tried = f"endpoint {one.candidate.url} ({one.candidate.origin}): {one.verdict}"
        yield one.chosen or found is not None, tried
    if found is not None:
        async with Metadata(found.url, config.source.api_version) as metadata:
            yield _judge(await metadata.fetch(), "scheduled events can be read")
            known = await metadata.instance()
            yield _judge(known, "instance metadata can be read")
            instance = known if isinstance(known, Instance) else instance
    here = place(config.source.vm_name or instance.name, instance)
    for name, settings in config.sinks.items():
        yield await _sink(name, settings, here)


def _judge(answer: object, good: str) -> tuple[bool, str]:
    return (False, answer.detail) if isinstance(answer, SourceProblem) else (True, good)


async def _sink(name: str, settings: SinkSettings, here: Place) -> tuple[bool, str]:
    plugin = find_sink(settings.type)
    here = replace(here, sink=name)

    async def prove() -> str:
        if plugin.check is not None:
            return await plugin.check(settings, here)
        async with plugin.open(settings, here):
            return "can be reached"

    said = await attempt(prove(), settings.retry.timeout)
    return not isinstance(said, Unavailable), f"sink {name}: {said}"
