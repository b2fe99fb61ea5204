"""Who may call over HTTP: callers with a token or certificate, and senders of signed votes."""

import logging
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from aiohttp import web

from bridge.common.log import Seldom
from bridge.common.signatures import SIGNATURE
from bridge.config import HttpSettings
from bridge.policy.allow import certified
from bridge.runtime.runtime import CALLER_ADDRESS
from bridge.web.access import certificates
from bridge.web.access.certificates import Certificate
from bridge.web.access.tokens import ANONYMOUS, VOTES, Caller, bearer, needed, who
from bridge.web.context import WebContext
from bridge.web.problems import ProblemDetails

log = logging.getLogger(__name__)

SIGNED = Caller("by signature", "http", frozenset())
"""A caller without a token but with a signature, which is verified with the vote."""

CHALLENGE = 'Bearer realm="scheduled-events-bridge"'


@dataclass(slots=True)
class Authenticator:
    """A signature takes precedence over a token, and a token over a certificate."""

    context: WebContext
    _audits: defaultdict[str, Seldom] = field(default_factory=lambda: defaultdict(Seldom))
    _logs: Seldom = field(default_factory=Seldom)

    async def admit(self, request: web.Request) -> Caller:
        """Return the caller if it has permission; else raise the problem document for it."""
        http = self.context.runtime.config.http
        if request.path == VOTES and request.method == "OPTIONS":
            return ANONYMOUS
        if request.path == VOTES and self._may_be_signed(request):
            return SIGNED
        presented = bearer(request.headers.get("Authorization"))
        shown = certificates.read(request.get_extra_info("peercert"))
        if presented is None and shown is not None:
            return await self._by_certificate(shown, request)
        if http.tokens or http.asks_for_certificates:
            return await self._by_token(_given(presented, http), request)
        if needed(request.method, request.path) == "read":
            return ANONYMOUS
        raise ProblemDetails(
            403, "No token is configured (http.tokens), so HTTP is read-only here."
        )

    async def _by_token(self, presented: str, request: web.Request) -> Caller:
        caller, unreadable = who(presented, self.context.runtime.config.http.tokens)
        if unreadable and self._logs.now():
            for name, why in unreadable:
                log.error("http.token_unreadable", extra={"token": name, "error": why})
        if caller is None:
            await self._refused("token", "unknown", request)
            challenge = f'{CHALLENGE}, error="invalid_token"'
            sentence = "This bridge does not know this token."
            raise ProblemDetails(401, sentence, WWW_Authenticate=challenge)
        scope = needed(request.method, request.path)
        if scope not in caller.scopes:
            await self._refused("token", caller.name, request)
            challenge = f'{CHALLENGE}, error="insufficient_scope"'
            sentence = f"This needs the scope {scope}, which the token {caller.name} does not have."
            raise ProblemDetails(403, sentence, WWW_Authenticate=challenge)
        return caller

    async def _by_certificate(self, shown: Certificate, request: web.Request) -> Caller:
        """The certificate was verified when the connection was made; it may have expired since."""
        if shown.until < time.time():
            raise ProblemDetails(
                401, "The client certificate has expired.", WWW_Authenticate=CHALLENGE
            )
        if not shown.has_usable_subject:
            sentence = (
                f"The client certificate needs a subject of 1 to {certificates.LONGEST} characters."
            )
            raise ProblemDetails(401, sentence, WWW_Authenticate=CHALLENGE)
        if needed(request.method, request.path) == "read":
            return Caller(shown.subject, "http", frozenset({"read"}))
        if request.path != VOTES:
            raise ProblemDetails(
                403, "A client certificate allows reading and voting; this needs the scope operate."
            )
        approver = certified(self.context.runtime.config.approvals.allow, shown.subject)
        if approver is None:
            await self._refused("certificate", shown.subject, request)
            sentence = f"The certificate of {shown.subject} is not in approvals.allow."
            raise ProblemDetails(403, sentence, more={"reason": "unauthorized"})
        return Caller(shown.subject, "http", frozenset({"read", "approve"}), approver)

    def _may_be_signed(self, request: web.Request) -> bool:
        allow = self.context.runtime.config.approvals.allow
        keys = any(rule.keys and rule.via in (None, "http") for rule in allow)
        claims = SIGNATURE in request.headers and "Authorization" not in request.headers
        return keys and claims and request.method == "POST"

    async def _refused(
        self, what: Literal["token", "certificate"], actor: str, request: web.Request
    ) -> None:
        if what == "token":
            self.context.tokens_refused += 1
        else:
            self.context.certificates_refused += 1
        if count := self._audits[what].now():
            detail = {"method": request.method, "count": count}
            fields = {"actor": actor, "address": CALLER_ADDRESS.get(), **detail}
            log.warning(f"http.{what}_refused", extra=fields)  # noqa: G004  one of two
            audit = self.context.runtime.audit
            await audit(f"{what}.refused", actor=actor, via="http", detail=detail)


def _given(presented: str | None, http: HttpSettings) -> str:
    if presented is not None:
        return presented
    sentence = "This needs a token: Authorization: Bearer TOKEN."
    if http.asks_for_certificates:
        also = "a token (Authorization: Bearer TOKEN) or " if http.tokens else ""
        sentence = f"This needs {also}a client certificate."
    raise ProblemDetails(401, sentence, WWW_Authenticate=CHALLENGE)
