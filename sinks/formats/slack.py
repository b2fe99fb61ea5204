"""Slack: a Block Kit message for an incoming webhook; foreign text cannot ping or add links."""

from typing import Any, Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings, kind_of
from sinks.formats._sentences import Told, tell
from sinks.formats._text import as_json

LONGEST_HEADER = 150
LONGEST_TEXT = 3000
LONGEST_FIELD = 2000
MOST_FIELDS = 10
UNWANTED = frozenset({"source.snapshot", "bridge.audited"})

_LIGHTS = (
    (17, "\N{LARGE RED CIRCLE}"),
    (13, "\N{LARGE ORANGE CIRCLE}"),
    (10, "\N{LARGE YELLOW CIRCLE}"),
    (0, "\N{LARGE GREEN CIRCLE}"),
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class SlackSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["slack"] = "slack"


def escape(text: str, most: int) -> str:
    """Slack's three control characters as entities, cut to *most* between two of them."""
    escaped = text.translate(_ENTITIES)
    if len(escaped) <= most:
        return escaped
    kept = escaped[: most - 1]
    head, ampersand, tail = kept.rpartition("&")
    return f"{head if ampersand and ';' not in tail else kept}…"


def _encode(cloudevent: CloudEvent) -> bytes:
    told = tell(cloudevent)
    attributes = cloudevent.attributes
    headline = f"{_light(attributes['severitynumber'])} {told.headline}"
    message = {
        "text": escape(f"{headline}: {told.sentence}", LONGEST_TEXT),
        "blocks": _blocks(headline, told, f"{attributes['type']} {attributes['id']}"),
        "unfurl_links": False,
        "unfurl_media": False,
    }
    return as_json(message)


def _light(severity: int) -> str:
    return next(light for least, light in _LIGHTS if severity >= least)


def _blocks(headline: str, told: Told, origin: str) -> list[dict[str, Any]]:
    fields = [_plain(f"{name}\n{value}", LONGEST_FIELD) for name, value in told.facts]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(headline, LONGEST_HEADER)},
        {"type": "section", "text": _plain(told.sentence, LONGEST_TEXT)},
    ]
    if told.todo:
        typed = {"type": "mrkdwn", "text": f"When ready: `{told.todo}`", "verbatim": True}
        blocks.append({"type": "section", "text": typed})
    if fields:
        blocks.append({"type": "section", "fields": fields[:MOST_FIELDS]})
    return [*blocks, {"type": "context", "elements": [_plain(origin, LONGEST_FIELD)]}]


def _plain(text: str, most: int) -> dict[str, Any]:
    """Text that Slack does not parse: no mentions, no links, no markup, no :emoji:."""
    return {"type": "plain_text", "text": escape(text, most), "emoji": False}


def _wants(cloudevent: CloudEvent) -> bool:
    return kind_of(cloudevent) not in UNWANTED


def _open(_: SlackSettings) -> Format:
    return Format(_encode, "application/json", _wants)


plugin = FormatPlugin(settings=SlackSettings, open=_open, stale="skip")
