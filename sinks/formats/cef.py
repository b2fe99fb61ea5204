"""ArcSight's Common Event Format, version 0: for Microsoft Sentinel, ArcSight and most others."""

import json
import re
from typing import Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings
from sinks.formats._news import PRODUCT, SERVICE, News, product_version, read
from sinks.formats._sentences import tell
from sinks.formats._text import Pairs, cut

CONTENT_TYPE = "text/plain; charset=utf-8"

_TITLES = {
    "scheduled": "Scheduled event announced",
    "updated": "Scheduled event changed",
    "started": "Scheduled event started",
    "completed": "Scheduled event completed",
    "canceled": "Scheduled event canceled",
    "source.degraded": "Metadata service degraded",
    "source.recovered": "Metadata service recovered",
    "source.snapshot": "Scheduled events pending",
}
_LINE_END = re.compile("\r\n|[\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HEADER = str.maketrans({"\\": "\\\\", "|": "\\|"})
_VALUE = str.maketrans({"\\": "\\\\", "=": "\\=", "\n": "\\n", "\r": "\\r"})
# In bytes, with escapes: never more than CEF's dictionary gives each key, and in all so little that
# a line fits into the 8 KiB of a syslog message, whatever text comes from outside.
_MOST = {
    "externalId": 40,
    "act": 63,
    "outcome": 63,
    "dvchost": 100,
    "msg": 1023,
    "reason": 512,
    "cs1": 2000,
    "cs4": 512,
}


class CefSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["cef"] = "cef"


def _title(news: News) -> str:
    """The same for all CloudEvents of a class, as CEF requires; the fields have the facts."""
    if news.family == "bridge":
        action = news.class_id.removeprefix("azse.audit.")
        return action.replace(".", " ").replace("-", " ").capitalize()
    return _TITLES.get(news.kind) or news.kind.replace(".", " ").capitalize()


def _escaped(value: str) -> str:
    """Line ends become the one that CEF can escape; other control characters are removed."""
    return _CONTROL.sub(" ", _LINE_END.sub("\n", value)).strip().translate(_VALUE)


def _encode(cloudevent: CloudEvent) -> bytes:
    news = read(cloudevent)
    pairs = Pairs(_escaped, _MOST, usual=255)
    _common(news, pairs)
    if news.family in _PARTICULAR:
        _PARTICULAR[news.family](news, pairs)
    pairs.put("cs6", ",".join(pairs.short), "truncated")
    header = "|".join(
        part.translate(_HEADER)
        for part in (
            "CEF:0",
            PRODUCT,
            SERVICE,
            cut(product_version(), 31),
            news.class_id,
            _title(news),
            str(news.severity.cef),
        )
    )
    values = (f"{key}={value}" for key, value in pairs.values.items())
    return f"{header}|{' '.join(values)}".encode()


def _common(news: News, pairs: Pairs) -> None:
    pairs.put("rt", news.time)
    pairs.put("cat", news.category)
    pairs.put("dvchost", news.vm)
    pairs.put("deviceExternalId", news.observer.get("vmId"))
    pairs.put("externalId", news.text("eventId"))
    pairs.put("cs3", news.cloudevent.id, "cloudEventId")
    pairs.put("cs4", news.attributes["source"], "scope")
    if news.is_drill:
        pairs.put("flexString1", "true", "drill")


def _scheduled_event(news: News, pairs: Pairs) -> None:
    """What transitions and approvals say about their scheduled event."""
    missing = news.integer("resourcesTruncated") or 0
    pairs.put("act", news.text("eventType"))
    pairs.put("deviceCustomDate1", news.moment("notBefore"), "notBefore")
    pairs.put_names("cs1", news.names("resources"), missing, "resources")


def _transition(news: News, pairs: Pairs) -> None:
    _scheduled_event(news, pairs)
    pairs.put("msg", news.text("description"))
    pairs.put("cs2", news.text("eventSource"), "eventSource")
    pairs.put("cn1", news.integer("durationInSeconds"), "durationInSeconds")
    pairs.put("cn2", news.integer("documentIncarnation"), "documentIncarnation")
    affected = news.names("resources")
    if len(affected) == 1 and affected[0].casefold() != news.vm.casefold():
        pairs.put("dhost", affected[0])
    if news.word == "completed" and news.data.get("inferred") is False:
        pairs.put("end", news.time)


def _approval(news: News, pairs: Pairs) -> None:
    _scheduled_event(news, pairs)
    pairs.put("outcome", news.word)
    pairs.put("suser", news.text("approver"))
    pairs.put("reason", news.text("reason"))
    pairs.put("msg", news.text("detail"))
    pairs.put("dhost", news.text("resource"))
    pairs.put("cs5", news.text("decision"), "decision")
    pairs.put("flexString2", news.text("via"), "via")
    if news.moment("postedAt") is not None:
        pairs.put("requestMethod", "POST")
        pairs.put("request", "/metadata/scheduledevents")


def _source(news: News, pairs: Pairs) -> None:
    pairs.put("msg", tell(news.cloudevent).sentence)
    pairs.put("reason", news.text("reason"))
    pairs.put("request", news.text("endpoint"))
    pairs.put("cn3", news.integer("status"), "httpStatus")
    pairs.put_names("cs1", news.pending, news.integer("pendingTruncated") or 0, "pending")


def _audit(news: News, pairs: Pairs) -> None:
    detail = json.dumps(news.data.get("detail") or {}, ensure_ascii=False)
    pairs.put("act", news.text("action"))
    pairs.put("outcome", news.outcome)
    pairs.put("suser", news.text("actor"))
    _caller(news, pairs)
    pairs.put("flexString2", news.text("via"), "via")
    pairs.put("msg", detail)


def _caller(news: News, pairs: Pairs) -> None:
    """`src` is for IPv4 only."""
    if news.address is not None and news.address.version == 4:
        pairs.put("src", str(news.address))
    elif news.address is not None:
        pairs.put("c6a2", str(news.address), "Source IPv6 Address")


_PARTICULAR = {
    "transition": _transition,
    "approval": _approval,
    "source": _source,
    "bridge": _audit,
}


def _open(_: CefSettings) -> Format:
    return Format(_encode, CONTENT_TYPE, begins=b"CEF:")


plugin = FormatPlugin(settings=CefSettings, open=_open)
