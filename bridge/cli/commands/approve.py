"""`seb approve`, `seb hold` and `seb release`: vote as the local user, or with a signing key."""

import argparse
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bridge.cli.client import RequestRefused
from bridge.cli.shell import FAILED, USAGE, Ask, add_connection, complain, talk, tell
from bridge.cli.text import as_json
from bridge.cli.voting.ballot import (
    Ballot,
    Choice,
    PendingEvent,
    ballots,
    find,
    nearest,
    open_here,
    unseen,
)
from bridge.cli.voting.cast import VoteMessage, Voting
from bridge.cli.voting.result import VoteResult, lines, unknown
from bridge.cli.voting.signer import Signer
from bridge.common.fields import parse_duration
from bridge.policy.message import MalformedApproval, read

_LONGEST_WAIT = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("event_ids", nargs="*", default=[], metavar="EVENT_ID")
    which.add_argument("--all", action="store_true", help="every event that can be approved here")
    spoken_for = parser.add_mutually_exclusive_group()
    spoken_for.add_argument(
        "--resource", metavar="VM", help="the VM to vote for (default: the bridge's own)"
    )
    spoken_for.add_argument(
        "--all-resources",
        action="store_true",
        help="vote for all VMs of the event; needs permission",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, in your own words; it is published")
    parser.add_argument(
        "--wait",
        type=_wait,
        default="10s",
        metavar="TIME",
        help="how long to wait for Azure's answer (10s)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    add_connection(parser)
    parser.add_argument("--sign-with", metavar="FILE", help="sign with the key in FILE")
    parser.add_argument(
        "--print",
        action="store_true",
        help="print the signed vote as one line for a Kafka or MQTT topic; do not send it",
    )


def run(args: argparse.Namespace) -> int:
    choice = Choice(args.command, args.resource, args.all_resources, args.reason)
    try:
        signer = _signer(args)
        _check(choice, args.event_ids)
    except ValueError as error:
        complain(f"{error}.")
        return USAGE
    if args.print and signer is not None:
        return _print(signer, unseen(_unique(args.event_ids), choice, choice.resource))

    async def conversation(ask: Ask) -> int:
        voting = Voting(ask, args.wait, signer)
        plan, verdicts = await _plan(ask, args, choice)
        try:
            for ballot in plan:
                verdicts += await voting.cast(ballot)
        finally:
            if verdicts or not plan:
                _tell(verdicts, args)
        return FAILED if any(one.bad for one in verdicts) else 0

    return talk(args, conversation)


def _signer(args: argparse.Namespace) -> Signer | None:
    """The key to sign with. Raises ValueError if the options do not go together."""
    if args.print and (args.all or args.url or args.socket or args.json):
        raise ValueError(
            "--print does not contact a bridge: give it EVENT_IDs, without --url or --json"
        )
    if args.sign_with is None and args.print:
        raise ValueError(
            "--print needs --sign-with FILE: only a signature can prove who you are there"
        )
    return None if args.sign_with is None else Signer.read(args.sign_with)


def _check(choice: Choice, event_ids: Sequence[str]) -> None:
    """Refuse a vote that the bridge could not read. Raises ValueError."""
    try:
        for one in unseen(event_ids or ["any"], choice, choice.resource):
            read(VoteMessage.write(one).body, [])
    except MalformedApproval as error:
        raise ValueError(f"This is not a valid vote: {error}") from None


def _wait(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds > _LONGEST_WAIT:
        raise argparse.ArgumentTypeError("at most 10m")
    return seconds


async def _plan(
    ask: Ask, args: argparse.Namespace, choice: Choice
) -> tuple[list[Ballot], list[VoteResult]]:
    """The votes to send, and the ids not worth sending because the bridge has never seen them."""
    try:
        events: list[PendingEvent] = (await ask("GET", "/api/v1/events"))["events"]
        vm = (await ask("GET", "/api/v1"))["vm"]
    except RequestRefused:
        if args.sign_with is None or args.all:
            raise
        # A signature allows voting, not reading.
        return list(unseen(_unique(args.event_ids), choice, choice.resource)), []
    pending = open_here(events, choice.resource)
    if args.all:
        return list(ballots(pending, choice, vm)), []
    found, strange = find(args.event_ids, events)
    said = [unknown(one, choice.decision, nearest(one, pending)) for one in strange]
    return list(ballots(found, choice, vm)), said


def _unique(event_ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(one.upper() for one in event_ids))


def _print(signer: Signer, plan: Iterable[Ballot]) -> int:
    for ballot in plan:
        message = VoteMessage.write(ballot)
        tell(signer.wrapped(message.id, time.time(), message.body))
    return 0


def _tell(verdicts: Sequence[VoteResult], args: argparse.Namespace) -> None:
    if args.json:
        tell(as_json({"outcomes": [one.as_json() for one in verdicts]}))
    elif verdicts:
        tell(lines(verdicts, datetime.now(UTC)))
    else:
        tell("No scheduled event can be approved here.\n")
