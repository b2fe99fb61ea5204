"""`seb status`: the whole bridge on one screen; exits with 1 if it is not ready."""

import argparse

from bridge.cli.shell import FAILED, Ask, add_connection, talk, tell
from bridge.cli.status_text import told
from bridge.cli.text import as_json, columns

PATH = "/api/v1/status"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--json", action="store_true", help="print JSON as the API returns it")


def run(args: argparse.Namespace) -> int:
    async def conversation(ask: Ask) -> int:
        status = await ask("GET", PATH)
        if args.json:
            tell(as_json(status))
        else:
            events = (await ask("GET", "/api/v1/events?pending=true"))["events"]
            tell(told(status, events, columns()))
        return 0 if status["readiness"]["ready"] else FAILED

    return talk(args, conversation)
