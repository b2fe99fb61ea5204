"""What Azure promises about its events, enforced in a strict scenario; and the refusals."""

from bridge.common.fields import write_duration
from bridge.simulator.world.building_blocks import MINIMUM_NOTICE, NewEvent

MOST_USER_EVENTS = 10


class Refused(ValueError):
    """The world does not allow this now."""


class Unknown(Refused):
    """There is no such scheduled event."""


class RuleBroken(Refused):
    """A strict scenario does not allow this at all."""


def notice_of(plan: NewEvent) -> float:
    usual = MINIMUM_NOTICE.get(plan.type, MINIMUM_NOTICE["Reboot"])
    return usual if plan.notice is None else plan.notice


def check_notice(event_type: str, notice: float) -> None:
    least = MINIMUM_NOTICE.get(event_type, 0.0)
    if notice < least:
        raise RuleBroken(
            f"strict: {event_type} needs a notice of at least {write_duration(least)}, "
            f"not {write_duration(notice)}"
        )


def check_new(plan: NewEvent, *, pending_user_events: int) -> None:
    if plan.status == "Scheduled":
        check_notice(plan.type, notice_of(plan))
    if plan.source == "User" and pending_user_events >= MOST_USER_EVENTS:
        raise RuleBroken(
            f"strict: at most {MOST_USER_EVENTS} user-initiated events may be pending at a time"
        )
