"""`seb check`: prints what a configuration will do; `--connect` also tests that it works."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from bridge.cli.shell import BAD_CONFIGURATION, FAILED, USAGE, complain, tell
from bridge.cli.text import as_json, columns, printable, wrapped
from bridge.common.fields import Secret
from bridge.common.supervise import attempt
from bridge.config import Config, ConfigError, fingerprint, load
from bridge.config.describe import describe
from bridge.core.model import Instance
from bridge.metadata.answers import SourceProblem
from bridge.metadata.client import Metadata
from bridge.metadata.discovery import NOT_FOUND, Attempt, discover
from bridge.plugins import (
    ApprovalSettings,
    Listening,
    Place,
    SinkSettings,
    Unavailable,
    read_secret,
)
from bridge.plugins.sinks import find_sink
from bridge.plugins.sources import find_approvals
from bridge.runtime.identity import place

_PATIENCE = 15.0
"""Seconds for an approval source; it limits its own steps to less."""
_SILENCE = frozenset({"unreachable", "timeout", "reset"})
"""Reasons that do not prove that anything is there."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="the configuration; the same as -c FILE"
    )
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the configuration")
    parser.add_argument(
        "--connect",
        action="store_true",
        help="also connect to the endpoint, every sink and every approval source",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object")
    shown.add_argument("--quiet", action="store_true", help="print only what is wrong")


def run(args: argparse.Namespace) -> int:
    """Print sentences. Return 78 if the file is invalid, 1 if something cannot be reached."""
    if args.file is not None and args.config is not None:
        complain("Give the file once: FILE or -c FILE.")
        return USAGE
    file = args.file or args.config
    try:
        config = load(file, os.environ)
    except ConfigError as error:
        return _invalid(error, args)
    if args.json:
        return asyncio.run(_as_json(config, connect=args.connect))
    said = describe(config)
    tell(_faults(said) if args.quiet else _text(config, said, columns()))
    return asyncio.run(_connect(config, quiet=args.quiet)) if args.connect else 0


def _invalid(error: ConfigError, args: argparse.Namespace) -> int:
    if args.json:
        tell(as_json({"valid": False, "problems": list(error.problems)}))
    else:
        for problem in error.problems:
            complain(problem)
    return BAD_CONFIGURATION


def _text(config: Config, said: Mapping[str, Sequence[str]], width: int | None) -> str:
    """The verdict, and the sentences under a heading for each subject."""
    what = f"{config.file} is valid" if config.file else "No configuration file: all defaults"
    count = len(said["warnings"])
    with_ = f", with {count} warning{'' if count == 1 else 's'}" if count else ""
    text = wrapped(printable(f"{what}{with_}."), width)
    for subject, sentences in said.items():
        if sentences:
            text += f"\n{subject[0].upper()}{subject[1:]}\n"
            text += "".join(_bullet(one, width) for one in sentences)
    return text


def _bullet(sentence: str, width: int | None) -> str:
    return f"- {wrapped(printable(sentence), width, indent=2)[2:]}"


def _faults(said: Mapping[str, Sequence[str]]) -> str:
    return "".join(f"Warning: {printable(one)}\n" for one in said["warnings"])


async def _as_json(config: Config, *, connect: bool) -> int:
    proved = [one async for one in _prove(config)] if connect else []
    tell(
        as_json(
            {
                "valid": True,
                "file": str(config.file) if config.file else None,
                "sha256": fingerprint(config),
                "problems": [],
                **{subject.lower(): said for subject, said in describe(config).items()},
                "connections": [{"ok": good, "detail": said} for good, said in proved],
            }
        )
    )
    return 0 if all(good for good, _ in proved) else FAILED


async def _connect(config: Config, *, quiet: bool) -> int:
    failed = False
    if not quiet:
        tell("\nConnections\n")
    async for good, sentence in _prove(config):
        if not good or not quiet:
            tell(f"{'ok    ' if good else 'FAILED'}  {printable(sentence)}\n")
            sys.stdout.flush()
        failed = failed or not good
    return FAILED if failed else 0


async def _prove(config: Config) -> AsyncIterator[tuple[bool, str]]:
    instance = Instance()
    configured = config.source.endpoint
    found, attempts = await discover(
        config.source.api_version, configured=None if configured == "auto" else configured
    )
    if found is None:
        yield False, f"{NOT_FOUND} If it is elsewhere, set source.endpoint"
        for one in attempts:
            yield False, _tried(one, one.verdict)
    else:
        async with Metadata(found.url, config.source.api_version) as metadata:
            answer = await metadata.fetch()
            for one in attempts:
                yield _reached(one, answer)
            yield _judge("scheduled events", answer)
            known = await metadata.instance()
            yield _judge("instance metadata", known)
            instance = known if isinstance(known, Instance) else instance
    here = place(config.source.vm_name or instance.name, instance)
    for name, settings in config.sinks.items():
        yield await _sink(name, settings, here)
    for name, source in config.approvals.sources.items():
        yield await _approvals(name, source, here)
    for result in (*_secret_files(config), *_certificate(config)):
        yield result


def _tried(one: Attempt, verdict: str) -> str:
    return f"endpoint {one.candidate.url} ({one.candidate.origin}): {verdict}"


def _reached(one: Attempt, answer: object) -> tuple[bool, str]:
    """A configured endpoint is chosen without a request, so only the *answer* proves it."""
    if one.chosen and isinstance(answer, SourceProblem) and answer.reason in _SILENCE:
        return False, _tried(one, "nothing answers there")
    return True, _tried(one, one.verdict)


def _judge(what: str, answer: object) -> tuple[bool, str]:
    if isinstance(answer, SourceProblem):
        return False, f"{what}: {answer.detail}"
    return True, f"{what} can be read"


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


async def _approvals(name: str, settings: ApprovalSettings, here: Place) -> tuple[bool, str]:
    """Enter the source, but read nothing: what it has is for the bridge."""
    plugin = find_approvals(settings.type)
    here = replace(here, sink=name)

    async def prove() -> str:
        if plugin.check is not None:
            return await plugin.check(settings, here)
        async with plugin.open(settings, here, Listening(name, {}, 0.0, lambda _: None)):
            return "can be read"

    said = await attempt(prove(), _PATIENCE)
    return not isinstance(said, Unavailable), f"approvals from {name}: {said}"


def _secret_files(config: Config) -> Iterator[tuple[bool, str]]:
    """Read each token, password and key that is in a file."""
    for where, secret in _secrets(config, ""):
        if secret.file is None:
            continue
        try:
            read_secret(secret, where)
        except Unavailable as problem:
            yield False, str(problem)
        else:
            yield True, f"{where} can be read from {secret.file}"


def _secrets(value: object, where: str) -> Iterator[tuple[str, Secret]]:
    """The secrets in the configuration, each with its key."""
    if isinstance(value, Secret):
        yield where, value
    elif isinstance(value, BaseModel):
        named = type(value).model_fields
        yield from _each(((named[name].alias or name, each) for name, each in value), where)
    elif isinstance(value, Mapping):
        yield from _each(value.items(), where)
    elif isinstance(value, list | tuple):
        yield from _each(enumerate(value), where)


def _each(parts: Iterable[tuple[object, object]], where: str) -> Iterator[tuple[str, Secret]]:
    for name, part in parts:
        yield from _secrets(part, f"{where}.{name}" if where else str(name))


def _certificate(config: Config) -> Iterator[tuple[bool, str]]:
    from bridge.web.server import CannotListen, server_context  # noqa: PLC0415  few checks need it

    if config.http.tls is None:
        return
    try:
        server_context(config.http.tls)
    except CannotListen as problem:
        yield False, str(problem)
    else:
        yield True, "http.tls: the certificate and its key can be used"
