"""`seb drill`: rehearse a scheduled event at the running bridge, and say what came of it."""

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
from bridge.cli.text import as_json
from bridge.drills.plan import NOTICE, Plan, complaint

PATH = "/api/v1/drills"
_OPTIONS = {"eventType": "type", "resources": "resource"}
EVERY = 0.5
PATIENCE = 10.0
"""How many seconds the sinks have to take what they lack, once the drill is over."""
GIVE_UP = 120.0
"""How many seconds a bridge that is not there is waited for: it may be restarting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", metavar="TYPE", help=f"one of {', '.join(NOTICE)}")
    parser.add_argument("--notice", metavar="TIME", help="like 15m, at most 24h; else Azure's")
    parser.add_argument(
        "--duration", metavar="TIME", help="the interruption to announce; else it is unknown"
    )
    parser.add_argument(
        "--resource",
        action="append",
        dest="resources",
        default=[],
        metavar="VM",
        help="a VM that it is about, several times for several; else this one",
    )
    parser.add_argument("--description", metavar="TEXT", help="what it is about, after Drill:")
    parser.add_argument("--stop", action="store_true", help="end the drill that is under way")
    parser.add_argument("--json", action="store_true", help="the report as the API gives it")
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """0 when the policy was satisfied in time and every required sink got it, else 1."""
    try:
        plan = _plan(args)
    except ValueError as error:
        complain(f"{error}.")
        return USAGE

    async def conversation(ask: Ask) -> int:
        report = await _stop(ask) if plan is None else await _rehearse(ask, plan, quiet=args.json)
        if report is None:
            return FAILED
        tell(as_json(report) if args.json else told(report))
        return 0 if report["passed"] or args.stop else FAILED

    return talk(args, conversation)


def _plan(args: argparse.Namespace) -> dict[str, Any] | None:
    """What is sent, once it can be: the bridge reads it by the same rules. None: stop.

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
        raise ValueError("--stop goes with no option that says what to rehearse")
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
        # Ctrl-C: consumers must hear that it is over.
        complain("The drill is being stopped.")
        return await _ended(ask, report["href"])
    except RequestRefused:
        # Whoever may not look must not leave it behind either.
        with suppress(RequestRefused):
            await ask("DELETE", report["href"])
        raise


async def _follow(ask: Ask, report: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Look again and again, also while the bridge restarts, until there is nothing to wait for."""
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
    """Its report, once it is over; it may have ended by itself before us."""
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
        complain("No drill is under way.")
        return None
    return await _ended(ask, running[0]["href"])
