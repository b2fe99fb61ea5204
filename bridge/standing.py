"""Which vote stands: what lapses with a change of the event, what is older, what is no news."""

from dataclasses import replace
from datetime import timedelta

from bridge.model import ScheduledEvent
from bridge.votes import Vote

_HARSHNESS = {"freeze": 0, "reboot": 1, "redeploy": 2, "preempt": 3, "terminate": 3}


def lapsed(vote: Vote, event: ScheduledEvent) -> bool:
    """Whether the event turned for the worse since the vote: more VMs, harsher, or earlier."""
    before = vote.about
    named = {name.casefold() for name in before.resources}
    if any(name.casefold() not in named for name in event.resources):
        return True
    if _harsher(before.event_type.casefold(), event.event_type.casefold()):
        return True
    if event.not_before is None or before.not_before is None:
        return False
    return event.not_before < before.not_before


def _harsher(before: str, now: str) -> bool:
    """What is not known to be as mild is taken for harsher."""
    if before == now:
        return False
    if before in _HARSHNESS and now in _HARSHNESS:
        return _HARSHNESS[now] > _HARSHNESS[before]
    return True


def unchanged(vote: Vote, standing: Vote, event: ScheduledEvent, hold_timeout: timedelta) -> bool:
    """Whether *vote* says again what still stands."""
    if vote.decision != standing.decision or lapsed(standing, event):
        return False
    if vote.verified and not standing.verified:
        return False
    return vote.decision != "hold" or vote.at < standing.at + hold_timeout


def renewed(standing: Vote, vote: Vote) -> Vote:
    """*standing*, said again by *vote*: what is older than the later of them replaces neither."""
    position, signed_at = vote.position or standing.position, vote.signed_at or standing.signed_at
    return replace(standing, position=position, signed_at=signed_at)


def older(vote: Vote, standing: Vote) -> bool:
    """Whether *vote* was given before *standing*: by their places in one log, else as signed.

    What can be compared in neither way came in the order in which it was given.
    """
    if (places := _offsets(vote, standing)) is not None:
        return places[0] < places[1]
    if vote.signed_at is not None and standing.signed_at is not None:
        return vote.signed_at < standing.signed_at
    return False


def _offsets(vote: Vote, standing: Vote) -> tuple[int, int] | None:
    if vote.position is None or standing.position is None:
        return None
    log, _, offset = vote.position.rpartition("/")
    other_log, _, other = standing.position.rpartition("/")
    if not log or log != other_log or not (_is_number(offset) and _is_number(other)):
        return None
    return int(offset), int(other)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
