"""Text for people: foreign text on one safe line, times in UTC, durations, lists of names."""

import re
from collections.abc import Sequence
from datetime import datetime

NAMES_SHOWN = 4
LONGEST_NAME = 64

_BREAKS = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]+")
_UNSEEN = re.compile("[\u00ad\u061c\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufffe]")
_MENTION = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)
_PLAIN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def clean(value: object, most: int) -> str:
    """One line of at most *most* characters: no control or invisible characters, no mentions."""
    text = str(value)[: most * 4]
    text = _BREAKS.sub(" ", _UNSEEN.sub("", text)).strip()
    return cut(_MENTION.sub("@\u200b", text), most)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def list_names(names: Sequence[object], more: int = 0) -> str:
    """`a`, `a and b`, `a, b, c, d and 7 more`."""
    shown = [clean(name, LONGEST_NAME) for name in names[:NAMES_SHOWN]]
    hidden = len(names) - len(shown) + more
    if hidden:
        shown.append(f"{hidden} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def read_moment(text: object) -> datetime | None:
    """A real time, else None; .NET writes the year 1 for "no time"."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo and moment.year >= 2000 else None


def say_moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def say_span(seconds: float) -> str:
    """`40 s`, `15 min`, `3 h 20 min`, `5 days`: exact enough to act on."""
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(hours / 24)} days"


def say_due(moment: datetime, now: datetime) -> str:
    """`2026-11-15 18:29:47 UTC (in 15 min)`."""
    left = (moment - now).total_seconds()
    about = f"in {say_span(left)}" if left >= 0 else f"{say_span(-left)} ago"
    return f"{say_moment(moment)} ({about})"


def command(verb: str, event_id: object) -> str | None:
    """What to type; None for an id that is not safe to paste into a shell."""
    text = str(event_id)
    return f"seb {verb} {text}" if _PLAIN_ID.fullmatch(text) else None
