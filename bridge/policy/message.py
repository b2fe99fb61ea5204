"""The strict reader of approvals: CloudEvents in either mode, plain JSON, or Azure's own body.

It makes nothing up: no id, no time, and no default that could defeat the check for replays.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from bridge.common.signatures import HEADERS, ID, SIGNATURE, TIMESTAMP, is_signed
from bridge.common.strictjson import decode
from bridge.core.cloudevent import PREFIX, full_type
from bridge.policy.votes import DECISIONS, Approval

LARGEST = 64 * 1024
MOST_EVENTS = 100
APPROVE = full_type("approve")
_TEXT_LIMIT = 512
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_ATTRIBUTE = re.compile(r"ce[_-]([a-z0-9]+)")
_TYPE = "content-type"
_STRUCTURED = "application/cloudevents"
_PAYLOAD = "payload"
_SAID_OF_ALL = ("approver", "resource", "decision", "reason", "seen")

MessageHeaders = Sequence[tuple[str, bytes]]


class MalformedApproval(ValueError):
    """The message is not an approval; the text says why."""


class NotForUs(ValueError):
    """One of our own CloudEvents, but not an approval: counted and dropped, never answered."""


@dataclass(frozen=True, slots=True)
class _Message:
    data: Any
    key: str | None = None
    id: str | None = None


def unwrap(body: bytes, headers: MessageHeaders) -> tuple[bytes, MessageHeaders]:
    """Unwrap a signed message from a transport without headers.

    Such a message is a JSON object with the three headers, and the signed text as `payload`.
    Raises `MalformedApproval` when the body is too large.
    """
    if len(body) > LARGEST:
        raise MalformedApproval(f"it has {len(body)} bytes; at most {LARGEST} are read")
    if is_signed(headers) or SIGNATURE.encode() not in body:
        return body, headers
    try:
        found = decode(body)
        if not isinstance(found, dict) or set(found) != {*HEADERS, _PAYLOAD}:
            return body, headers
        found[TIMESTAMP] = str(found[TIMESTAMP])
        texts = {name: found[name].encode() for name in (*HEADERS, _PAYLOAD)}
    except (ValueError, AttributeError):
        return body, headers
    return texts[_PAYLOAD], [(name, texts[name]) for name in HEADERS]


def read(
    body: bytes, headers: MessageHeaders, position: str | None = None, *, signed: bool = False
) -> list[Approval]:
    """Read a message: one approval for each scheduled event that it names.

    Raises only `MalformedApproval` or `NotForUs`, for any bytes. From the headers of a *signed*
    message, only the webhook-id is read.
    """
    if len(body) > LARGEST:
        raise MalformedApproval(f"it has {len(body)} bytes; at most {LARGEST} are read")
    found = _single(headers)
    message = _message(body, found, signed=signed)
    data = message.data
    if signed and message.id not in (None, found.get(ID)):
        raise MalformedApproval("its webhook-id is not the CloudEvent's id")
    if not isinstance(data, dict):
        raise MalformedApproval("its data is not a JSON object")
    _refuse_misspelled(data)
    given = _text(data, "id") or _text(found, ID)
    fallback = position or fingerprint(body)
    key = message.key or given or fallback
    shown = message.id or given or fallback
    said = [_approval(item, key, shown) for item in _items(data)]
    return list({approval.event_key: approval for approval in said}.values())


def fingerprint(body: bytes) -> str:
    """The id of a message that has no id of its own."""
    return f"sha256-{hashlib.sha256(body).hexdigest()}"


def _single(headers: MessageHeaders) -> dict[str, str]:
    """The headers that matter, attributes as `ce_NAME`; each may occur only once."""
    found: dict[str, str] = {}
    for spelled, value in headers:
        name = spelled.lower()
        if attribute := _ATTRIBUTE.fullmatch(name):
            name = f"ce_{attribute[1]}"
        elif name not in {_TYPE, ID}:
            continue
        if name in found:
            raise MalformedApproval(f"the header {name} occurs twice")
        try:
            found[name] = value.decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedApproval(f"the header {name} is not UTF-8") from None
    return found


def _message(body: bytes, headers: Mapping[str, str], *, signed: bool) -> _Message:
    """Choose the mode by content type: a structured message may repeat attributes as headers."""
    kind = _media_type(headers.get(_TYPE, ""))
    if kind in {_STRUCTURED, f"{_STRUCTURED}+json"}:
        return _structured(_json(body))
    if kind.startswith(_STRUCTURED):
        raise MalformedApproval("a CloudEvent must be JSON, one in each message")
    attributes = {name[3:]: value for name, value in headers.items() if name.startswith("ce_")}
    if attributes:
        _refuse_stranger(attributes)
        if signed:
            raise MalformedApproval(
                "a signature does not cover headers; send a structured CloudEvent"
            )
        _must_be_json(kind)
        return _checked(attributes, _json(body))
    data = _json(body)
    # A structured CloudEvent from a transport without content types.
    return _structured(data) if isinstance(data, dict) and "specversion" in data else _Message(data)


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _must_be_json(kind: str) -> None:
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise MalformedApproval("its data and its content type must be JSON")


def _refuse_stranger(attributes: Mapping[str, Any]) -> None:
    """Our other CloudEvents may arrive here too; they are not for us, even if malformed."""
    kind = attributes.get("type")
    if isinstance(kind, str) and kind.startswith(PREFIX) and kind != APPROVE:
        raise NotForUs(f"its type is {kind[:_TEXT_LIMIT]}")


def _json(body: bytes) -> Any:
    try:
        return decode(body, unique=True)
    except ValueError as error:
        raise MalformedApproval(f"it is not JSON: {error}") from None


def _structured(envelope: Any) -> _Message:
    if not isinstance(envelope, dict):
        raise MalformedApproval("a structured CloudEvent must be a JSON object")
    _refuse_stranger(envelope)
    if "data_base64" in envelope:
        raise MalformedApproval("its data must be a JSON object, not data_base64")
    _must_be_json(_media_type(_text(envelope, "datacontenttype") or ""))
    return _checked(envelope, envelope.get("data"))


def _checked(attributes: Mapping[str, Any], data: Any) -> _Message:
    """Check the four attributes that CloudEvents requires, and that the type is ours."""
    for name in ("specversion", "id", "source", "type"):
        value = attributes.get(name)
        if not isinstance(value, str) or not value or _CONTROL.search(value):
            raise MalformedApproval(f"the CloudEvent has no valid {name}")
        if len(value) > _TEXT_LIMIT:
            raise MalformedApproval(
                f"the CloudEvent's {name} is longer than {_TEXT_LIMIT} characters"
            )
    if attributes["specversion"] != "1.0":
        raise MalformedApproval("specversion must be 1.0")
    if attributes["type"] != APPROVE:
        raise MalformedApproval(f"its type must be {APPROVE}")
    return _Message(data, f"{attributes['source']}\x1f{attributes['id']}", attributes["id"])


def _refuse_misspelled(data: Mapping[str, Any]) -> None:
    """Refuse near misses of `decision`: taking a hold for an approval is the worst mistake."""
    for name in islice(data, MOST_EVENTS):
        close = get_close_matches(name[:_TEXT_LIMIT].casefold(), ["decision"], cutoff=0.8)
        if close and name != "decision":
            raise MalformedApproval(f"the field {name[:40]!r} is unknown; did you mean decision?")


def _items(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The events named: several in Azure's body, one in ours. All other fields apply to each."""
    requests = data.get("StartRequests")
    if requests is None:
        return [data]
    if not isinstance(requests, list) or not 0 < len(requests) <= MOST_EVENTS:
        raise MalformedApproval(f"StartRequests must be a list of 1 to {MOST_EVENTS}")
    if not all(isinstance(one, dict) for one in requests):
        raise MalformedApproval("StartRequests must contain objects with an EventId")
    if "eventId" in data:
        raise MalformedApproval("it has both eventId and StartRequests; give one of them")
    if any("decision" in one for one in requests):
        raise MalformedApproval(
            "decision goes beside StartRequests, not inside; it applies to all of them"
        )
    said = {name: data.get(name) for name in _SAID_OF_ALL}
    return [{**said, "eventId": one.get("EventId")} for one in requests]


def _approval(data: Mapping[str, Any], key: str, shown: str) -> Approval:
    event_id = _text(data, "eventId")
    if not event_id:
        raise MalformedApproval("it names no eventId")
    decision = _text(data, "decision") or "approve"
    if decision not in DECISIONS:
        raise MalformedApproval(
            f"decision must be one of {', '.join(DECISIONS)}, not {decision[:40]!r}"
        )
    return Approval(
        event_id=event_id,
        key=key,
        id=shown,
        decision=decision,
        approver=_text(data, "approver"),
        resource=_text(data, "resource"),
        reason=_text(data, "reason"),
        seen=_text(data, "seen"),
    )


def _text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _TEXT_LIMIT or _CONTROL.search(value):
        raise MalformedApproval(
            f"{name} must be text of at most {_TEXT_LIMIT} printable characters"
        )
    return value or None
