"""What the commands that call a running bridge share: options, error messages, exit codes."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bridge.cli import client
from bridge.cli.location import Location, read_location
from bridge.cli.text import columns, printable, wrapped
from bridge.config import ConfigError

FAILED = 1
USAGE = 2
BAD_CONFIGURATION = 78


@dataclass(frozen=True, slots=True)
class Ask:
    """`await ask(method, path)` returns the bridge's response. The fields say where it is."""

    where: Location
    token: str | None = None

    async def __call__(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        return await client.call(
            method, path, where=self.where, token=self.token, body=body, headers=headers
        )


def add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="the running bridge's configuration"
    )
    there = parser.add_mutually_exclusive_group()
    there.add_argument(
        "--socket", type=Path, metavar="PATH", help="the bridge's control socket, instead of -c"
    )
    there.add_argument(
        "--url",
        type=_url,
        help="the bridge's HTTP address, instead of -c; your token is sent there",
    )
    parser.add_argument(
        "--token", help="for HTTP, if you may not open the control socket (or set SEB_TOKEN)"
    )


def _url(text: str) -> str:
    try:
        url = urlsplit(text)
        good = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:
        good = False
    else:
        good = good and not (url.query or url.fragment or "@" in url.netloc)
    if not good:
        raise argparse.ArgumentTypeError(
            "must look like https://vm-1.example:17245 or https://proxy.example/seb, "
            "without a password"
        )
    return text.rstrip("/")


def talk(args: argparse.Namespace, conversation: Callable[[Ask], Coroutine[Any, Any, int]]) -> int:
    """Run *conversation* with the running bridge; its result is the exit code."""
    try:
        where = locate(args, os.environ)
    except ConfigError as error:
        complain(str(error))
        return BAD_CONFIGURATION
    for warning in where.warnings:
        complain(warning)
    try:
        return asyncio.run(conversation(Ask(where, _token(args, os.environ))))
    except (client.Unreachable, client.RequestRefused) as error:
        complain(str(error))
        return FAILED


def _token(args: argparse.Namespace, environ: Mapping[str, str]) -> str | None:
    """The user's token. The bridge of another VM does not know it, and a signature needs none."""
    signed = args.url is not None and getattr(args, "sign_with", None) is not None
    return args.token or (None if signed else environ.get("SEB_TOKEN"))


def locate(args: argparse.Namespace, environ: Mapping[str, str]) -> Location:
    """Where the user says that the bridge is, else where its configuration says."""
    if args.socket is not None or args.url is not None:
        return Location(args.socket, args.url)
    return read_location(args.config, environ)


def tell(text: str) -> None:
    sys.stdout.write(text)


def complain(sentence: str) -> None:
    sys.stderr.write(wrapped(f"seb: {printable(sentence)}", columns(sys.stderr)))
