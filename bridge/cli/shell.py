"""What the commands that call a running bridge share: options, error messages, exit codes."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.cli import client
from bridge.cli.text import printable
from bridge.config import Config, ConfigError, load

FAILED = 1
USAGE = 2
BAD_CONFIGURATION = 78


@dataclass(frozen=True, slots=True)
class Ask:
    """`await ask(method, path)` returns the bridge's response. The fields say where it is."""

    config: Config
    token: str | None = None
    url: str | None = None

    async def __call__(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        return await client.call(
            method,
            path,
            config=self.config,
            token=self.token,
            url=self.url,
            body=body,
            headers=headers,
        )


def add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="the running bridge's configuration"
    )
    parser.add_argument(
        "--token", help="for HTTP, if you may not open the control socket (or set SEB_TOKEN)"
    )


def talk(
    args: argparse.Namespace,
    conversation: Callable[[Ask], Coroutine[Any, Any, int]],
    url: str | None = None,
) -> int:
    """Run *conversation* with the running bridge; its result is the exit code."""
    try:
        config = read_config(args.config, os.environ)
    except ConfigError as error:
        for problem in error.problems:
            complain(problem)
        return BAD_CONFIGURATION

    try:
        return asyncio.run(conversation(Ask(config, args.token, url)))
    except (client.Unreachable, client.RequestRefused) as error:
        complain(str(error))
        return FAILED


def tell(text: str) -> None:
    sys.stdout.write(text)


def complain(sentence: str) -> None:
    sys.stderr.write(f"seb: {printable(sentence)}\n")


def read_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration, even if this shell lacks the variables with the service's secrets."""
    try:
        return load(path, environ)
    except ConfigError:
        try:
            return load(path, _Forgiving(environ))
        except ConfigError:
            pass
        raise


class _Forgiving(Mapping[str, str]):
    """An environment in which every variable is set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        if name in self._environ or name.startswith("SEB_"):
            return self._environ[name]
        return "unset"

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)
