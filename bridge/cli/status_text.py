"""The status of the bridge as one screen of text; pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bridge.cli.ids import shortened
from bridge.cli.text import age, countdown, names, pairs, printable, span, table, wrapped
from bridge.cli.voting.progress import progress
from bridge.common.fields import write_duration
from bridge.runtime.runbook import link

_Json = Mapping[str, Any]
_EVENTS = ("PENDING", "TYPE", "STATUS", "STARTS IN", "APPROVALS", "THIS VM", "VMS")
_SINKS = ("SINK", "TYPE", "STATE", "SINCE", "WAITING", "OLDEST", "DELIVERED", "DEAD", "WHY")
_SOURCES = ("APPROVALS FROM", "TYPE", "STATE", "HEARD", "RECEIVED", "LAG", "WHY")
_MOST_EVENTS = 5
_HAS_PLACE = frozenset({"source", "journal", "clock", "sink", "approvals"})
"""Parts whose notes are shown with the part."""
_RED, _YELLOW, _GREEN = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;32m"
_PLAIN, _END = "\x1b[0m", "\n"


def told(status: _Json, events: Sequence[_Json], width: int | None = None) -> str:
    """The verdict, the facts, what is pending, every sink and every approval source."""
    now = datetime.fromisoformat(status["now"]).astimezone(UTC)
    parts = [
        _verdict(status, width),
        pairs(_facts(status, now), width),
        _pending(events, now, width),
        table(_SINKS, _sinks(status, now), width, notes=True),
        table(_SOURCES, _sources(status), width, notes=True) if status["approvalSources"] else "",
        _advice(status, width),
    ]
    return "\n".join(part for part in parts if part)


def _verdict(status: _Json, width: int | None) -> str:
    """The first line is all that most readers need; it has the color of the answer."""
    found = status["readiness"]
    why = ", ".join(one["what"] for one in found["reasons"])
    but = ", but the metadata service does not answer" if _is_failing(status) else ""
    said = f"ready{but}" if found["ready"] else f"NOT READY: {why}"
    text = wrapped(printable(f"The bridge on {_vm(status['vm'])} is {said}."), width)
    if width is None:
        return text
    paint = _RED if not found["ready"] else _YELLOW if but else _GREEN
    return f"{paint}{text.removesuffix(_END)}{_PLAIN}{_END}"


def _is_failing(status: _Json) -> bool:
    """Whether the source gives no usable answer; the bridge is ready until its last one is old."""
    return status["source"]["state"] in {"failing", "degraded"}


def _vm(vm: _Json) -> str:
    place = [vm["location"], vm["zone"] and f"zone {vm['zone']}", vm["scaleSet"]]
    known = ", ".join(str(one) for one in place if one)
    return f"{vm['name'] or 'a VM of unknown name'}{f' ({known})' if known else ''}"


def _facts(status: _Json, now: datetime) -> Iterator[tuple[str, str]]:
    yield "bridge", f"version {status['version']}, running for {age(status['startedAt'], now)}"
    yield "source", _source(status["source"])
    yield "clock", _clock(status["source"])
    yield "journal", _journal(status)
    yield "config", _configuration(status["configuration"], now)
    yield "policy", _approvals(status)
    for note in status["readiness"]["notes"]:
        if note["what"].split()[0] not in _HAS_PLACE:
            yield note["what"], note["why"]


def _source(source: _Json) -> str:
    seconds = source["lastGoodAgeSeconds"]
    last = "no answer yet" if seconds is None else f"answered {span(seconds)} ago"
    because = [part.rstrip(".") for part in (source["problem"], source["detail"]) if part]
    trouble = f" ({': '.join(because)})" if because else ""
    where = source["endpoint"] or "endpoint not found"
    every = f"every {write_duration(source['pollIntervalSeconds'])}, scope {source['scope']}"
    return f"{source['state']}{trouble}, {last}; {where} {every}"


def _clock(source: _Json) -> str:
    skew = source["clockSkewSeconds"]
    if skew is None:
        return "not compared with Azure's yet"
    how = "ahead of" if skew > 0 else "behind"
    wrong = "; check how its time is synchronized" if source["clockSkewed"] else ""
    return f"{abs(skew):.1f}s {how} Azure's{wrong}"


def _journal(status: _Json) -> str:
    journal = status["journal"]
    state = "writable" if journal["writable"] else f"CANNOT BE WRITTEN ({journal['trouble']})"
    used = f"{_size(journal['bytes'])} of {_size(journal['maxBytes'])}"
    lost = (one["why"] for one in status["readiness"]["notes"] if one["what"] == "journal")
    return "; ".join((state, used, journal["path"], *lost))


def _size(count: int) -> str:
    return f"{count / 1024**2:.4g} MiB" if count >= 1024**2 else f"{count / 1024:.0f} KiB"


def _configuration(found: _Json, now: datetime) -> str:
    file = found["file"] or "no file, all defaults"
    loaded = f"loaded {age(found['loadedAt'], now)} ago"
    state = {True: "THE FILE DIFFERS: seb check, then seb reload", False: "the same as the file"}
    said = found["fileError"] or state.get(found["differs"])
    last = found["reload"]
    failed = last is not None and last["outcome"] == "rejected"
    reload = f"the reload {age(last['at'], now)} ago was rejected" if failed else None
    return "; ".join(one for one in (file, loaded, said, reload) if one)


def _approvals(status: _Json) -> str:
    found = status["approvals"]
    dry = "; DRY RUN: Azure is never told" if found["dryRun"] else ""
    drill = status["drill"]
    running = f"; the drill {drill['eventId']} is running" if drill else ""
    return f"require {found['require']}{dry}{running}"


def _pending(events: Sequence[_Json], now: datetime, width: int | None) -> str:
    if not events:
        return "No scheduled event is pending.\n"
    ids = [event["eventId"] for event in events]
    shown = shortened(ids) if width else dict(zip(ids, ids, strict=True))
    rows = [
        (
            shown[event["eventId"]],
            event["eventType"],
            f"{event['status']}{' (drill)' if event['drill'] else ''}",
            _left(event, now),
            progress(event),
            {True: "yes", False: "no"}.get(event["affected"], "unknown"),
            names(event["resources"], 1 if width else 3),
        )
        for event in events[:_MOST_EVENTS]
    ]
    more = len(events) - len(rows)
    rest = f"and {more} more: seb events --pending\n" if more > 0 else ""
    return table(_EVENTS, rows, width) + rest


def _left(event: _Json, now: datetime) -> str:
    if event["status"] != "Scheduled" or event["notBefore"] is None:
        return "-"
    return countdown((datetime.fromisoformat(event["notBefore"]) - now).total_seconds())


def _sinks(status: _Json, now: datetime) -> Iterator[tuple[object, ...]]:
    """The reason of readiness is more than the error: it says how to resume."""
    remarks = _remarks(status)
    for sink in status["sinks"]:
        yield (
            sink["name"],
            sink["type"],
            sink["state"],
            age(sink["since"], now),
            sink["waiting"],
            age(sink["oldest"], now),
            sink["delivered"],
            sink["dead"],
            _why(sink, remarks),
        )


def _why(sink: _Json, remarks: Mapping[str, str]) -> str | None:
    why = remarks.get(f"sink {sink['name']}")
    if why is None or sink["state"] == "untried":
        return None
    return why if sink["required"] else f"{why} (best effort)"


def _sources(status: _Json) -> Iterator[tuple[object, ...]]:
    remarks = _remarks(status)
    for source in status["approvalSources"]:
        heard = source["heardSecondsAgo"]
        yield (
            source["name"],
            source["type"],
            source["state"],
            "-" if heard is None else span(heard),
            source["received"],
            source["lag"],
            remarks.get(f"approvals {source['name']}"),
        )


def _remarks(status: _Json) -> dict[str, str]:
    found = status["readiness"]
    return {one["what"]: one["why"] for one in (*found["notes"], *found["reasons"])}


def _advice(status: _Json, width: int | None) -> str:
    """Where the runbook says what to do about each reason and note."""
    found = status["readiness"]
    sections = [link("source")] if _is_failing(status) else []
    sections += [one["runbook"] for one in (*found["reasons"], *found["notes"])]
    if any(sink["dead"] for sink in status["sinks"]):
        sections.append(link("dead-letters"))
    if status["configuration"]["fileError"] or status["configuration"]["reloadsFailed"]:
        sections.append(link("configuration"))
    known = ", ".join(one for one in dict.fromkeys(sections) if one != link("sink-untried"))
    return wrapped(f"What to do: {printable(known)}", width) if known else ""
