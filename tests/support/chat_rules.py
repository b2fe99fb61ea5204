"""What Slack, Teams and PagerDuty accept, transcribed from their public docs, and hostile texts."""

import json
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from support.cloudevents import HOSTILE
from support.world import published

from bridge.core.cloudevent import CloudEvent

PREFIX = "azure.scheduledevents."
ILL_MEANT = (
    "<!channel> <!here> <@U012AB3CD> <#C123> <!subteam^S1> <https://evil.example|Approve here>",
    "&lt;!channel&gt; &amp;lt; & < >",
    "@here @channel @everyone @All",
    "[Approve](https://evil.example) ![i](https://evil.example/i.png) **b** - a\r- b\r1. c",
    "```\ncode\n``` `tick` *bold* _it_ ~gone~ > quote :rotating_light:",
    "{{DATE(2017-02-14T06:00:00Z, SHORT)}} <at>Everyone</at> </at>",
    '"}],"event_action":"resolve","dedup_key":"x',
    "\x00\x1b[31m\r\n\t\x07\x85",
    "\u202egnp.exe\u202c\u2066x\u2069\ufeff",
    "$(reboot); `reboot` && rm -rf / #",
    "\N{GRINNING FACE}" * 15_000,
    "x" * 60_000,
    '\\"' * 30_000,
    "<" * 60_000,
    HOSTILE,
    "",
    " ",
)
texts = st.sampled_from(ILL_MEANT) | st.text(max_size=80)


def spoiled(value: Any, draw: Any) -> Any:
    """The same shape, with other texts in it."""
    if isinstance(value, str):
        return draw(texts)
    if isinstance(value, list):
        return [spoiled(item, draw) for item in value]
    if isinstance(value, dict):
        return {name: spoiled(item, draw) for name, item in value.items()}
    return value


@st.composite
def ill_meant(draw: Any) -> CloudEvent:
    """A CloudEvent of any type, in whose data every text may be anything."""
    chosen = draw(st.sampled_from(sorted(published().items())))[1]
    envelope = chosen.envelope
    return encoded({**envelope, "data": spoiled(envelope["data"], draw)})


def encoded(envelope: dict[str, Any]) -> CloudEvent:
    return CloudEvent.decode(json.dumps(envelope, ensure_ascii=False).encode())


def told_of(kind: str, **data: Any) -> CloudEvent:
    """The usual CloudEvent of that kind, with other data; `approval.due` as it will be."""
    known = published()
    like = "approval.recorded" if kind == "approval.due" else kind
    envelope = known[f"{PREFIX}{like}.v1"].envelope
    return encoded({**envelope, "type": f"{PREFIX}{kind}.v1", "data": {**envelope["data"], **data}})


def check_slack(message: dict[str, Any]) -> None:
    """docs.slack.dev, reference/block-kit: blocks and text objects; formatting: escaping text."""
    assert 1 <= len(message["text"]) <= 3000
    assert 1 <= len(message["blocks"]) <= 50
    for block in message["blocks"]:
        _CHECKS[block["type"]](block)
    for text in _strings(message):
        assert "<" not in text
        assert ">" not in text
        assert not re.search(r"&(?!amp;|lt;|gt;)", text), text
        assert not re.search(r"@(here|channel|everyone)\b", text, re.IGNORECASE)


def _text(found: dict[str, Any], most: int) -> None:
    assert 1 <= len(found["text"]) <= most
    if found["type"] == "plain_text":
        assert found.keys() == {"type", "text", "emoji"}
        assert found["emoji"] is False
    else:
        assert found.keys() == {"type", "text", "verbatim"}
        assert found["type"] == "mrkdwn"
        assert found["verbatim"] is True
        assert re.fullmatch(r"When ready: `seb approve [A-Za-z0-9._:-]{1,128}`", found["text"])


def _header(block: dict[str, Any]) -> None:
    assert block["text"]["type"] == "plain_text"
    _text(block["text"], 150)


def _section(block: dict[str, Any]) -> None:
    assert ("text" in block) != ("fields" in block)
    for found in block.get("fields", []):
        _text(found, 2000)
    assert "fields" not in block or 1 <= len(block["fields"]) <= 10
    if "text" in block:
        _text(block["text"], 3000)


def _context(block: dict[str, Any]) -> None:
    assert 1 <= len(block["elements"]) <= 10
    for found in block["elements"]:
        _text(found, 2000)


_CHECKS = {"header": _header, "section": _section, "context": _context}


def check_teams(body: bytes) -> dict[str, Any]:
    """learn.microsoft.com: send cards with a webhook, 28 KB; adaptivecards.io: elements of 1.4."""
    assert len(body) <= 28 * 1024
    message = json.loads(body)
    assert message["type"] == "message"
    [attachment] = message["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert "entities" not in card["msteams"], "a mention needs an entity"
    for element in card["body"]:
        _element(element)
    for text in _strings(message):
        assert "{{" not in text
        assert "<at" not in text
    return card


def _element(element: dict[str, Any]) -> None:
    if element["type"] == "Container":
        assert element["style"] in {"default", "emphasis", "good", "attention", "warning", "accent"}
        for inner in element["items"]:
            _element(inner)
        return
    assert element["type"] == "RichTextBlock", "every other text is Markdown"
    for run in element["inlines"]:
        assert run["type"] == "TextRun"
        assert run["text"]
        assert "selectAction" not in run


def check_pagerduty(body: dict[str, Any]) -> None:
    """github.com/PagerDuty/developer-docs: events-API-v2, overview and trigger events."""
    assert body["routing_key"]
    assert body["event_action"] in {"trigger", "acknowledge", "resolve"}
    assert 1 <= len(body["dedup_key"]) <= 255
    payload = body["payload"]
    assert 1 <= len(payload["summary"]) <= 1024
    assert payload["source"]
    assert payload["severity"] in {"critical", "error", "warning", "info"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", payload["timestamp"])
    for name in ("component", "group", "class"):
        assert isinstance(payload[name], str)
    assert isinstance(payload["custom_details"], dict)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
