"""The strict reader of approvals: CloudEvents in either mode, plain JSON, or Azure's own body.

It makes nothing up: no id, no time, and no default that could defeat the check for replays. What
has a sign of a CloudEvent is read as one or refused, never as plain JSON.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bridge.common.signatures import HEADERS, ID, SIGNATURE, TIMESTAMP, is_signed
from bridge.common.strictjson import decode, read_object
from bridge.core.cloudevent import full_type
from bridge.policy.attributes import REQUIRED, MessageHead, MessageHeaders, has_sign, is_ours
from bridge.policy.strict import misread, misread_attribute
from bridge.policy.votes import DECISIONS, Approval

LARGEST = 64 * 1024
MOST_EVENTS = 100
APPROVE = full_type("approve")
_TEXT_LIMIT = 512
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_STRUCTURED = "application/cloudevents"
_PAYLOAD = "payload"
_SAID_OF_ALL = ("approver", "resource", "decision", "reason", "seen")
_NEVER_EMPTY = ("decision", "resource", "seen", "approver")


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
    body: bytes,
    headers: MessageHeaders,
    position: str | None = None,
    *,
    place: str | None = None,
    signed: bool = False,
) -> list[Approval]:
    """Read a message: one approval for each scheduled event that it names.

    Raises only `MalformedApproval` or `NotForUs`, for any bytes. From the headers of a *signed*
    message, only the webhook-id is read. A message without an id is called by its *position*;
    *place* tells it from a message at the same position of another log.
    """
    if len(body) > LARGEST:
        raise MalformedApproval(f"it has {len(body)} bytes; at most {LARGEST} are read")
    head = _head(headers)
    message = _message(body, head, signed=signed)
    data = message.data
    if signed and message.id not in (None, head.webhook_id):
        raise MalformedApproval("its webhook-id is not the CloudEvent's id")
    if not isinstance(data, dict):
        raise MalformedApproval("its data is not a JSON object")
    if message.key is not None and has_sign(data):
        raise MalformedApproval("its data is a CloudEvent of its own")
    _refuse(misread(data))
    given = _text(data, "id") or _text({ID: head.webhook_id}, ID)
    key = message.key or given or _private_key(body, place or position)
    shown = message.id or given or position or fingerprint(body)
    said = [_approval(item, key, shown) for item in _items(data)]
    return list({approval.event_key: approval for approval in said}.values())


def fingerprint(body: bytes) -> str:
    """The id of a message that has no id of its own."""
    return f"sha256-{hashlib.sha256(body).hexdigest()}"


def claimed(body: bytes, headers: MessageHeaders) -> str | None:
    """The id that an unreadable message gives itself; None when it has none."""
    with suppress(MalformedApproval):
        body, headers = unwrap(body, headers)
    content = read_object(body) if len(body) <= LARGEST else {}
    try:
        head = MessageHead.read(headers)
    except ValueError:
        head = MessageHead("", None, {})
    places = (head.attributes, content, {"id": head.webhook_id})
    return next((shown for found in places if (shown := _claim(found, "id"))), None)


def _claim(found: Mapping[str, Any], name: str) -> str | None:
    try:
        return _text(found, name)
    except MalformedApproval:
        return None


def _private_key(body: bytes, place: str | None) -> str:
    """The key of a message without an id. No message can give itself such a key."""
    return f"place\x1f\x1f{place}" if place else f"body\x1f\x1f{fingerprint(body)}"


def _refuse(why: str | None) -> None:
    if why is not None:
        raise MalformedApproval(why)


def _head(headers: MessageHeaders) -> MessageHead:
    try:
        return MessageHead.read(headers)
    except ValueError as error:
        raise MalformedApproval(str(error)) from None


def _message(body: bytes, head: MessageHead, *, signed: bool) -> _Message:
    """Choose the mode by content type: a structured message may repeat attributes as headers."""
    kind = _media_type(head.content_type)
    _refuse_stranger(head.attributes)
    if kind in {_STRUCTURED, f"{_STRUCTURED}+json"}:
        return _structured(_json(body))
    if kind.startswith(_STRUCTURED):
        raise MalformedApproval("a CloudEvent must be JSON, one in each message")
    if head.attributes:
        if signed:
            raise MalformedApproval(
                "a signature does not cover headers; send a structured CloudEvent"
            )
        _must_be_json(kind)
        return _checked(head.attributes, _json(body))
    data = _json(body)
    # A structured CloudEvent from a transport without content types.
    return _structured(data) if isinstance(data, dict) and has_sign(data) else _Message(data)


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _must_be_json(kind: str) -> None:
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise MalformedApproval("its data and its content type must be JSON")


def _refuse_stranger(attributes: Mapping[str, Any]) -> None:
    """Our other CloudEvents may arrive here too; they are not for us, even if malformed."""
    kind = attributes.get("type")
    if is_ours(kind) and kind != APPROVE:
        raise NotForUs(f"its type is {str(kind)[:_TEXT_LIMIT]}")


def _json(body: bytes) -> Any:
    try:
        return decode(body, unique=True)
    except ValueError as error:
        raise MalformedApproval(f"it is not JSON: {error}") from None


def _structured(envelope: Any) -> _Message:
    if not isinstance(envelope, dict):
        raise MalformedApproval("a structured CloudEvent must be a JSON object")
    _refuse_stranger(envelope)
    return _checked(envelope, _data(envelope))


def _data(envelope: Mapping[str, Any]) -> Any:
    """The data. Several SDKs write JSON that they got as bytes in base64."""
    encoded = envelope.get("data_base64")
    if encoded is None:
        return envelope.get("data")
    if envelope.get("data") is not None:
        raise MalformedApproval("it has both data and data_base64; give one of them")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError):
        raise MalformedApproval("its data_base64 is not base64") from None
    return _json(data)


def _checked(attributes: Mapping[str, Any], data: Any) -> _Message:
    """Check the four attributes that CloudEvents requires, and that the type is ours."""
    for name in REQUIRED:
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
    _must_be_json(_media_type(_text(attributes, "datacontenttype") or ""))
    _refuse(misread_attribute(attributes))
    return _Message(data, f"{attributes['source']}\x1f{attributes['id']}", attributes["id"])


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
    unknown = next((name for one in requests for name in one if name != "EventId"), None)
    if unknown is not None:
        raise MalformedApproval(
            f"{unknown[:40]!r} is unknown inside StartRequests; "
            "other fields go beside StartRequests, and apply to all of them"
        )
    said = {name: data.get(name) for name in _SAID_OF_ALL}
    return [{**said, "eventId": one.get("EventId")} for one in requests]


def _approval(data: Mapping[str, Any], key: str, shown: str) -> Approval:
    event_id = _text(data, "eventId")
    if not event_id:
        raise MalformedApproval("it names no eventId")
    for name in _NEVER_EMPTY:
        if data.get(name) == "":
            raise MalformedApproval(f"its {name} is empty; give it a value or leave it out")
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
