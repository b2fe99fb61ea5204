"""`seb health`: tells supervisors by exit code whether the bridge is alive, or ready."""

import argparse
from collections.abc import Mapping
from typing import Any

from bridge.cli.client import RequestRefused
from bridge.cli.shell import FAILED, Ask, add_connection, talk, tell
from bridge.cli.text import as_json, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--ready", action="store_true", help="also check that it is ready")
    parser.add_argument("--json", action="store_true", help="print JSON as the probe returns it")


def _notes(answer: Mapping[str, Any]) -> str:
    """What is unusual besides the reasons, if that was asked for."""
    said = (f"note: {one['what']}: {one['why']}" for one in answer.get("notes", ()))
    return "".join(f"{printable(line)}\n" for line in said)


def run(args: argparse.Namespace) -> int:
    """Return 0 if the bridge is healthy; the control socket needs neither a token nor TLS."""

    async def conversation(ask: Ask) -> int:
        try:
            answer = await ask("GET", "/readyz" if args.ready else "/livez")
        except RequestRefused as error:
            if not (args.json and error.problem):
                tell(_notes(error.problem))
                raise
            tell(as_json(error.problem))
            return FAILED
        tell(
            as_json(answer)
            if args.json
            else f"{'ready' if args.ready else 'alive'}\n{_notes(answer)}"
        )
        return 0

    return talk(args, conversation)
