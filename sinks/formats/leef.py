"""IBM's Log Event Extended Format, version 2.0: for QRadar."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings
from sinks.formats._news import PRODUCT, SERVICE, News, product_version, read
from sinks.formats._sentences import tell
from sinks.formats._text import Pairs, cut

CONTENT_TYPE = "text/plain; charset=utf-8"

_BETWEEN = "^"  # the default is a tab, which syslog daemons rewrite on the way
_UNSAYABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029|^]+")
_TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A line stays within the 4096 bytes that QRadar reads by default.
_MOST = {"msg": 900, "resources": 900, "pending": 900, "scope": 250, "reason": 250, "eventId": 128}


class LeefSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["leef"] = "leef"


def _encode(cloudevent: CloudEvent) -> bytes:
    news = read(cloudevent)
    pairs = Pairs(_sayable, _MOST, usual=100)
    _common(news, pairs)
    if news.family in _PARTICULAR:
        _PARTICULAR[news.family](news, pairs)
    pairs.put("truncated", ",".join(pairs.short))
    header = (
        f"LEEF:2.0|{PRODUCT}|{SERVICE}|{cut(product_version(), 31)}|{news.class_id}|{_BETWEEN}|"
    )
    values = _BETWEEN.join(f"{key}={value}" for key, value in pairs.values.items())
    return f"{header}{values}".encode()


def _sayable(value: str) -> str:
    """LEEF has no escapes: what would end a line, a value or a header becomes a space."""
    return _UNSAYABLE.sub(" ", value).strip()


def _common(news: News, pairs: Pairs) -> None:
    moment = _EPOCH + timedelta(milliseconds=news.time)
    pairs.put("devTime", moment.isoformat(timespec="milliseconds").replace("+00:00", "+0000"))
    pairs.put("devTimeFormat", _TIME_FORMAT)
    pairs.put("sev", news.severity.leef)
    pairs.put("cat", news.category)
    pairs.put("vSrcName", news.vm)
    pairs.put("vmId", news.observer.get("vmId"))
    pairs.put("eventId", news.text("eventId"))
    pairs.put("cloudEventId", news.cloudevent.id)
    pairs.put("scope", news.attributes["source"])
    if news.is_drill:
        pairs.put("drill", "true")


def _scheduled_event(news: News, pairs: Pairs) -> None:
    """What transitions and approvals say about their scheduled event."""
    pairs.put("eventType", news.text("eventType"))
    pairs.put("notBefore", news.text("notBefore"))
    pairs.put_names("resources", news.names("resources"), news.integer("resourcesTruncated") or 0)


def _transition(news: News, pairs: Pairs) -> None:
    _scheduled_event(news, pairs)
    pairs.put("msg", news.text("description"))
    pairs.put("eventSource", news.text("eventSource"))
    pairs.put("durationInSeconds", news.integer("durationInSeconds"))


def _approval(news: News, pairs: Pairs) -> None:
    _scheduled_event(news, pairs)
    pairs.put("usrName", news.text("approver"))
    pairs.put("resource", news.text("resource"))
    pairs.put("decision", news.text("decision"))
    pairs.put("via", news.text("via"))
    pairs.put("reason", news.text("reason"))
    pairs.put("msg", news.text("detail"))


def _source(news: News, pairs: Pairs) -> None:
    pairs.put("reason", news.text("reason"))
    pairs.put("url", news.text("endpoint"))
    pairs.put("httpStatus", news.integer("status"))
    pairs.put_names("pending", news.pending, news.integer("pendingTruncated") or 0)
    pairs.put("msg", tell(news.cloudevent).sentence)


def _audit(news: News, pairs: Pairs) -> None:
    pairs.put("usrName", news.text("actor"))
    pairs.put("action", news.text("action"))
    pairs.put("outcome", news.outcome)
    pairs.put("src", str(news.address or ""))
    pairs.put("via", news.text("via"))
    pairs.put("msg", json.dumps(news.data.get("detail") or {}, ensure_ascii=False))


_PARTICULAR = {
    "transition": _transition,
    "approval": _approval,
    "source": _source,
    "bridge": _audit,
}


def _open(_: LeefSettings) -> Format:
    return Format(_encode, CONTENT_TYPE, begins=b"LEEF:")


plugin = FormatPlugin(settings=LeefSettings, open=_open)
