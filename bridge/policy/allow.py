"""Who may vote, and how: the entries of `approvals.allow`, and whether a signed vote is fresh."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from bridge.common.fields import Secret, Settings
from bridge.core.model import ScheduledEvent
from bridge.policy.votes import AUTO, DECISIONS, HTTP, SINK, Decision, Given, Refusal, Vote

if TYPE_CHECKING:
    from bridge.common.signatures import Key

TOLERANCE = timedelta(minutes=5)
"""How far clocks may differ, and how old a signature over HTTP may be."""
_TRUSTED = frozenset({AUTO, SINK})
_LONGEST = 512
_TYPE = r"(?:[A-Za-z][A-Za-z0-9-]*|[0-9]+(?:\.[0-9]+)+)"
_VALUE = r"""(?![ #])(?:[ !#-*\-.-:=?-\[\]-~]|\\(?:[ #,+"\\<>;]|[0-9A-F]{2}))*"""
_SUBJECT = re.compile(f"{_TYPE}={_VALUE}(?:[,+]{_TYPE}={_VALUE})*")


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST:
        raise ValueError(f"must be one line of 1 to {_LONGEST} characters")
    return text


def _subject(text: str) -> str:
    """Accept only the spelling that certificates are read in; any other would never match."""
    if not _SUBJECT.fullmatch(text):
        example = "openssl x509 -noout -subject -nameopt RFC2253 prints it: CN=orders,O=example"
        raise ValueError(f"must be the subject of a certificate as {example}")
    return text


Name = Annotated[str, AfterValidator(_name)]
Subject = Annotated[Name, AfterValidator(_subject)]
Globs = Annotated[tuple[Name, ...], Field(min_length=1)]


class ApproverKey(Settings, json_schema_extra={"minProperties": 1, "maxProperties": 1}):
    """A key that proves an approver: `{hmac: whsec_…}` or `{ed25519: whpk_…}`."""

    hmac: Secret | None = Field(None, description="whsec_…: a shared key, which verifies and signs")
    ed25519: Secret | None = Field(None, description="whpk_…: the public key")

    @model_validator(mode="after")
    def _one_that_can_be_used(self) -> Self:
        if (self.hmac is None) == (self.ed25519 is None):
            raise ValueError("needs either hmac or ed25519")
        # The file may not exist yet; until it does, the key proves nothing.
        with suppress(OSError):
            self.read()
        return self

    def read(self) -> "Key":
        """The current key. Raises OSError, or ValueError when it is not a key of this kind."""
        from bridge.common.signatures import read_key  # noqa: PLC0415  few configurations have keys

        if self.hmac is not None:
            key = read_key(self.hmac.get())
            if key.version != "v1":
                raise ValueError("hmac must be a key that starts with whsec_")
            return key
        key = read_key(self.ed25519.get() if self.ed25519 else "")
        if key.version != "v1a" or key.private:
            raise ValueError("ed25519 must be a public key, which starts with whpk_")
        return key


class Allow(Settings):
    """How one approver may vote, and how it proves its identity."""

    approver: Name = Field(description="its name, in votes and outcomes")
    keys: tuple[ApproverKey, ...] = Field((), description="keys that verify its votes")
    token: Name | None = Field(None, description="the name of its token in http.tokens")
    certificate: Subject | None = Field(
        None, description="the subject of its client certificate, such as CN=orders,O=example"
    )
    via: Name | None = Field(None, description="a source's name, http or control; default: any")
    resources: Globs | None = Field(None, description="globs over VM names; default: all")
    event_types: Globs | None = Field(None, description="such as Freeze; globs; default: all")
    decisions: Annotated[tuple[Decision, ...], Field(min_length=1)] = Field(
        DECISIONS, description="the decisions that it may vote for"
    )
    all_resources: bool = Field(
        default=False, description="its vote without a resource counts for all VMs"
    )

    @property
    def proves(self) -> bool:
        """Whether this approver can prove its identity: then its name alone is not enough."""
        return bool(self.keys or self.token or self.certificate)


def named(allow: Iterable[Allow], token: str) -> str:
    """Who presents a token: the approver whose entry names it, else the token's name."""
    return next((rule.approver for rule in allow if rule.token == token), token)


def certified(allow: Sequence[Allow], subject: str) -> str | None:
    """Who presents a certificate: the approver whose entry names its subject, else None."""
    for rule in allow:
        if rule.certificate == subject:
            return rule.approver
    listed = any(rule.approver == subject and rule.via in (None, HTTP) for rule in allow)
    return subject if listed else None


class Coverage:
    """Which globs match all VMs of an event; found once for all votes that need it."""

    def __init__(self, event: ScheduledEvent) -> None:
        self.event = event
        self._found: dict[tuple[str, ...], bool] = {}

    def of(self, globs: tuple[str, ...]) -> bool:
        if globs not in self._found:
            self._found[globs] = all(matches(one, globs) for one in self.event.resources)
        return self._found[globs]


def denied(
    allow: Sequence[Allow], vote: Vote, event: ScheduledEvent, coverage: Coverage | None = None
) -> Refusal | None:
    """Why that approver may not cast this vote on *event*; without entries, everyone may."""
    if not allow or vote.via in _TRUSTED:
        return None
    coverage = coverage or Coverage(event)
    objections = [
        _objection(rule, vote, coverage) for rule in allow if rule.approver == vote.approver
    ]
    if not objections:
        return Refusal("unauthorized", f"{vote.approver} is not in approvals.allow")
    if None in objections:
        return None
    return Refusal("unauthorized", f"{vote.approver} {objections[-1]}")


def speaks_for_all(
    allow: Iterable[Allow], vote: Vote, event: ScheduledEvent, coverage: Coverage | None = None
) -> bool:
    """Whether a vote without a resource counts for every VM of *event*."""
    coverage = coverage or Coverage(event)
    return any(
        rule.all_resources
        and rule.approver == vote.approver
        and _objection(rule, vote, coverage) is None
        for rule in allow
    )


def _objection(rule: Allow, vote: Vote, coverage: Coverage) -> str | None:
    if rule.proves and not vote.verified:
        return "must vote with its key, token or certificate, and this vote has none of them"
    if rule.via is not None and rule.via != vote.via:
        return f"may not vote via {vote.via}"
    if vote.decision not in rule.decisions:
        return f"may not vote {vote.decision}"
    kind = coverage.event.event_type
    if rule.event_types is not None and not matches(kind, rule.event_types):
        return f"may not vote on {kind}"
    if rule.resources is not None and not _covers(rule.resources, vote, coverage):
        return "may not vote for every VM that this vote covers"
    return None


def _covers(globs: tuple[str, ...], vote: Vote, coverage: Coverage) -> bool:
    return matches(vote.resource, globs) if vote.resource else coverage.of(globs)


def matches(name: str, globs: Iterable[str]) -> bool:
    """Whether a glob matches; case does not matter, as in Azure's names."""
    return any(fnmatchcase(name.casefold(), glob.casefold()) for glob in globs)


def stale(
    given: Given,
    now: datetime,
    *,
    since: datetime | None = None,
    born: datetime | None = None,
    ahead: timedelta = timedelta(),
    ended: datetime | None = None,
    named: bool = False,
) -> Refusal | None:
    """Why a signed vote is too old or too new; *since* is when its event was announced.

    Over HTTP, it must have been signed just now. On a bus, it may have waited for us, but must not
    be older than the event's announcement, or than the end of its previous life. *named* says that
    it names a state of the event. Our clock is *ahead* by that many seconds.
    """
    signed = given.signed_at
    if signed is None:
        return None
    if signed > now - ahead + TOLERANCE:
        return Refusal("unauthorized", "it was signed in the future; the clocks differ too much")
    if given.local and signed < given.at - ahead - TOLERANCE:
        return Refusal("unauthorized", "it was signed more than 5 minutes ago")
    if ended is not None and signed <= ended:
        return Refusal("replayed", "it was signed in an earlier life of the scheduled event")
    if born is not None and signed < born.replace(microsecond=0) - ahead:
        counts, why = _outlives(given, named=named), "this bridge's journal was created"
    else:
        counts = since is None or signed >= since - TOLERANCE
        why = "the scheduled event was announced"
    return None if counts else Refusal("replayed", f"it was signed before {why}")


def _outlives(given: Given, *, named: bool) -> bool:
    """Whether it counts in a journal that is newer, and cannot tell whether it comes again.

    An approval does if it names the state. So must a hold, which may have followed it.
    """
    decision = given.approval.decision
    return decision == "hold" or (decision == "approve" and named)
