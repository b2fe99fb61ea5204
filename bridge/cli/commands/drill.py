"""`seb drill`: rehearse a scheduled event on the running bridge, and print the report."""

import argparse
import asyncio
import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.drill_text import begun, news, told
from bridge.cli.shell import FAILED, USAGE, Ask, add_connection, complain, talk, tell
from bridge.cli.text import as_json, columns
from bridge.drills.plan import NOTICE, Plan, complaint

PATH = "/api/v1/drills"
_OPTIONS = {"eventType": "type", "resources": "resource"}
EVERY = 0.5
PATIENCE = 10.0
"""How many seconds the sinks have to catch up once the drill is over."""
GIVE_UP = 120.0
"""How many seconds to wait for a bridge that does not answer: it may be restarting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", metavar="TYPE", help=f"one of {', '.join(NOTICE)}")
    parser.add_argument(
        "--notice", metavar="TIME", help="such as 15m, at most 24h (default: what Azure gives)"
    )
    parser.add_argument(
        "--duration", metavar="TIME", help="the interruption to announce (default: unknown)"
    )
    parser.add_argument(
        "--resource",
        action="append",
        dest="resources",
        default=[],
        metavar="VM",
        help="a VM that the event names; repeatable (default: this VM)",
    )
    parser.add_argument(
        "--description", metavar="TEXT", help="the description; it is published after Drill:"
    )
    parser.add_argument("--stop", action="store_true", help="stop the running drill")
    parser.add_argument(
        "--json", action="store_true", help="print the report as the API returns it"
    )
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Return 0 if the policy was satisfied in time and every required sink got it, else 1."""
    try:
        plan = _plan(args)
    except ValueError as error:
        complain(f"{error}.")
        return USAGE

    async def conversation(ask: Ask) -> int:
        report = await _stop(ask) if plan is None else await _rehearse(ask, plan, quiet=args.json)
        if report is None:
            return FAILED
        tell(as_json(report) if args.json else told(report, columns()))
        return 0 if report["passed"] or args.stop else FAILED

    return talk(args, conversation)


def _plan(args: argparse.Namespace) -> dict[str, Any] | None:
    """The plan to send, checked by the rules that the bridge applies; None for `--stop`.

    Raises ValueError.
    """
    said = {
        "eventType": args.type,
        "notice": args.notice,
        "duration": args.duration,
        "description": args.description,
        "resources": args.resources or None,
    }
    given = {name: value for name, value in said.items() if value is not None}
    if args.stop and given:
        raise ValueError("--stop cannot be combined with options that say what to rehearse")
    if args.stop:
        return None
    try:
        Plan.model_validate(given)
    except ValidationError as error:
        key, what = complaint(error)
        name = key.partition(".")[0]
        raise ValueError(f"--{_OPTIONS.get(name, name)} {what}") from None
    return given


async def _rehearse(ask: Ask, plan: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    report: dict[str, Any] = await ask("POST", PATH, json.dumps(plan).encode(), headers)
    if not quiet:
        complain(begun(report, datetime.now(UTC)))
    try:
        return await _follow(ask, report, quiet=quiet)
    except asyncio.CancelledError:
        # Ctrl-C: consumers must get the end of the drill.
        complain("Stopping the drill.")
        return await _ended(ask, report["href"])
    except RequestRefused:
        # A caller that may not read must not leave a drill running either.
        with suppress(RequestRefused):
            await ask("DELETE", report["href"])
        raise


async def _follow(ask: Ask, report: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Poll, even while the bridge restarts, until there is nothing left to wait for."""
    heard, over = time.monotonic(), None
    while True:
        await asyncio.sleep(EVERY)
        try:
            latest = await ask("GET", report["href"])
        except Unreachable:
            if time.monotonic() - heard > GIVE_UP:
                raise
            continue
        if not quiet:
            for line in news(report, latest):
                complain(line)
        report, heard = latest, time.monotonic()
        if report["endedAt"] is None:
            continue
        over = over or heard
        if report["settled"] or heard - over > PATIENCE:
            return report


async def _ended(ask: Ask, href: str) -> dict[str, Any]:
    """Stop the drill and return its report; it may already have ended by itself."""
    try:
        report: dict[str, Any] = await ask("DELETE", href)
    except RequestRefused as error:
        if error.status != 409:
            raise
        report = await ask("GET", href)
    return report


async def _stop(ask: Ask) -> dict[str, Any] | None:
    found = (await ask("GET", PATH))["drills"]
    running = [one for one in found if one["endedAt"] is None]
    if not running:
        complain("No drill is running.")
        return None
    return await _ended(ask, running[0]["href"])
