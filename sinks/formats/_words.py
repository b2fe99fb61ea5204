"""What a CloudEvent says in English: a title that never varies, and a sentence with the facts."""

from sinks.formats._news import News
from sinks.formats._text import cut, listed

_TITLES = {
    "scheduled": "Scheduled event announced",
    "updated": "Scheduled event changed",
    "started": "Scheduled event started",
    "completed": "Scheduled event completed",
    "canceled": "Scheduled event canceled",
    "source.degraded": "Metadata service degraded",
    "source.recovered": "Metadata service recovered",
    "source.snapshot": "Scheduled events pending",
    "bridge.audited": "Bridge audited",
}
_LONGEST = 256


def title(news: News) -> str:
    """The same for all CloudEvents of a type."""
    return _TITLES.get(news.kind) or news.kind.replace(".", " ").capitalize()


def sentence(news: News) -> str:
    """For people; short enough for a line on a screen, whatever the CloudEvent holds."""
    say = {"transition": _transition, "approval": _approval, "source": _source, "bridge": _audit}
    words = say.get(news.family, title)(news)
    return f"Drill: {words}" if news.is_drill else words


def _transition(news: News) -> str:
    names = listed(news.names("resources"), _LONGEST).replace(",", ", ") or "unnamed resources"
    words = f"{_part(news, 'eventType') or 'Event'} of {names} {news.word}"
    due = _part(news, "notBefore")
    if due and news.word in {"scheduled", "updated"}:
        words += f", not before {due}"
    return _with(words, _part(news, "description"))


def _approval(news: News) -> str:
    about = _part(news, "eventType") or "scheduled event"
    words = f"{title(news)}: {about} {_part(news, 'eventId') or 'unknown'}"
    if approver := _part(news, "approver"):
        words += f", {_part(news, 'decision') or 'vote'} by {approver}"
    return _with(words, _part(news, "detail") or _part(news, "reason"))


def _source(news: News) -> str:
    if news.word != "snapshot":
        return _with(title(news), _part(news, "reason"))
    return f"{title(news)}: {len(news.pending) + (news.integer('pendingTruncated') or 0)}"


def _audit(news: News) -> str:
    words = f"{title(news)}: {_part(news, 'action') or 'unknown'}"
    actor = _part(news, "actor")
    return f"{words}, by {actor}" if actor else words


def _with(words: str, more: str | None) -> str:
    return f"{words}: {more}" if more else words


def _part(news: News, name: str) -> str | None:
    value = news.text(name)
    return value and cut(value, _LONGEST)
