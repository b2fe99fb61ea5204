"""`seb reload`: the running bridge reads its file again, and says what has changed."""

import argparse
import asyncio
import time
from typing import Any

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.commands.status import PATH as STATUS
from bridge.cli.shell import FAILED, Ask, add_connection, complain, talk, tell
from bridge.cli.text import as_json, printable

PATH = "/api/v1/reload"
EVERY = 0.2
PATIENCE = 30.0
"""How many seconds the bridge has to open its listeners again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--json", action="store_true", help="print JSON as the API returns it")


def run(args: argparse.Namespace) -> int:
    """Return 0 if the file is in force now, 1 if it was rejected; then nothing has changed."""

    async def conversation(ask: Ask) -> int:
        result = await _reload(ask)
        if args.json:
            tell(as_json(result))
        elif result["outcome"] == "applied":
            tell(said(result))
        else:
            complain("The file was rejected, and nothing has changed:")
            for error in result["errors"]:
                complain(error)
        return 0 if result["outcome"] == "applied" else FAILED

    return talk(args, conversation)


async def _reload(ask: Ask) -> dict[str, Any]:
    try:
        result: dict[str, Any] = await ask("POST", PATH)
    except RequestRefused as error:
        if "errors" not in error.problem:
            raise
        return {"outcome": "rejected", "changed": [], "errors": error.problem["errors"]}
    return await _reopened(ask, result) if result["outcome"] == "reopening" else result


async def _reopened(ask: Ask, asked: dict[str, Any]) -> dict[str, Any]:
    """The result of a reload that closes the connection on which it was asked for."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            last = (await ask("GET", STATUS))["configuration"]["reload"]
        except Unreachable:
            last = None
        if last is not None and last["at"] >= asked["at"]:
            return dict(last)
        await asyncio.sleep(EVERY)
    raise Unreachable("The bridge reloads, but has not opened its listeners again in time.")


def said(result: dict[str, Any]) -> str:
    if not result["changed"]:
        return "The configuration was read again; nothing in it has changed.\n"
    changed = "".join(f"  {printable(one)}\n" for one in result["changed"])
    return f"The configuration is in force. Changed:\n{changed}"
