"""Microsoft Teams: an Adaptive Card in the envelope that a Workflows webhook expects."""

from typing import Any, Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings, kind_of
from sinks.formats._sentences import Told, tell
from sinks.formats._text import as_json

LARGEST = 28 * 1024
"""The largest message of Teams, in bytes; the texts are short enough never to reach it."""
UNWANTED = frozenset({"source.snapshot", "bridge.audited"})

_CARD = "application/vnd.microsoft.card.adaptive"
_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
_STYLES = ((17, "attention"), (13, "warning"), (10, "accent"), (0, "good"))


class TeamsSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["teams"] = "teams"


def _encode(cloudevent: CloudEvent) -> bytes:
    told = tell(cloudevent)
    attributes = cloudevent.attributes
    card = {
        "$schema": _SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": _quiet(told.headline),
        "msteams": {"width": "Full"},
        "body": _body(told, _style(attributes["severitynumber"]), attributes["id"]),
    }
    attachment = {"contentType": _CARD, "contentUrl": None, "content": card}
    message = {"type": "message", "attachments": [attachment]}
    return as_json(message)


def _style(severity: int) -> str:
    return next(style for least, style in _STYLES if severity >= least)


def _body(told: Told, style: str, origin: str) -> list[dict[str, Any]]:
    headline = _text(_run(told.headline, weight="Bolder", size="Medium"))
    body = [
        {"type": "Container", "style": style, "bleed": True, "items": [headline]},
        _text(_run(told.sentence)),
    ]
    if told.todo:
        body.append(_text(_run("When ready: "), _run(told.todo, fontType="Monospace")))
    body += [_text(_run(f"{name}: ", weight="Bolder"), _run(value)) for name, value in told.facts]
    return [*body, _text(_run(origin, size="Small", isSubtle=True))]


def _text(*runs: dict[str, Any]) -> dict[str, Any]:
    """A RichTextBlock: the only kind of text in a card that is not parsed as Markdown."""
    return {"type": "RichTextBlock", "inlines": list(runs)}


def _run(text: str, **looks: Any) -> dict[str, Any]:
    return {"type": "TextRun", "text": _quiet(text), **looks}


def _quiet(text: str) -> str:
    """Break what a card would expand, {{DATE(…)}}, and the tags of mentions."""
    return text.replace("{{", "{\u200b{").replace("<at", "<\u200bat")


def _wants(cloudevent: CloudEvent) -> bool:
    return kind_of(cloudevent) not in UNWANTED


def _open(_: TeamsSettings) -> Format:
    return Format(_encode, "application/json", _wants)


plugin = FormatPlugin(settings=TeamsSettings, open=_open, stale="skip")
