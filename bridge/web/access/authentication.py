"""Who may call over HTTP: callers with a token or certificate, and senders of signed votes."""

import logging
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from aiohttp import web

from bridge.common.log import Seldom
from bridge.common.signatures import SIGNATURE
from bridge.config import HttpSettings, TokenSettings
from bridge.config.models import Scope
from bridge.policy.allow import certified
from bridge.runtime.runtime import CALLER_ADDRESS
from bridge.web.access import certificates
from bridge.web.access.certificates import Certificate
from bridge.web.access.cookies import session_ids, session_key
from bridge.web.access.tokens import (
    ANONYMOUS,
    SAFE_METHODS,
    SESSION,
    VOTES,
    Caller,
    bearer,
    needed,
    who,
)
from bridge.web.context import WebContext
from bridge.web.problems import ProblemDetails

log = logging.getLogger(__name__)

SIGNED = Caller("by signature", "http", frozenset(), by="signature")
"""A caller without a token but with a signature, which is verified with the vote."""

NOBODY = Caller("nobody", "http", frozenset(), by="none")
"""A caller that has not logged in, and asks only whether it has."""

_READ_ONLY = "No token is configured (http.tokens), so HTTP is read-only here."
CHALLENGE = 'Bearer realm="scheduled-events-bridge"'


@dataclass(slots=True)
class Authenticator:
    """Takes the first proof that a caller has: signature, token, session, certificate."""

    context: WebContext
    _audits: defaultdict[str, Seldom] = field(default_factory=lambda: defaultdict(Seldom))
    _logs: Seldom = field(default_factory=Seldom)

    async def admit(self, request: web.Request) -> Caller:
        """Return the caller if it has permission; else raise the problem document for it."""
        if request.path == VOTES and request.method == "OPTIONS":
            return ANONYMOUS
        if request.path == VOTES and self._may_be_signed(request):
            return SIGNED
        if request.path == SESSION:
            return await self._known(request)
        return await self._proven(request)

    async def _known(self, request: web.Request) -> Caller:
        """The caller, if it is known; anyone may ask that, log in and log out."""
        session = None if request.method == "POST" else self.session(request)
        if session is not None or request.method not in SAFE_METHODS:
            return session or NOBODY
        try:
            return await self._proven(request)
        except ProblemDetails:
            return NOBODY

    async def _proven(self, request: web.Request) -> Caller:
        http = self.context.runtime.config.http
        presented = bearer(request.headers.get("Authorization"))
        if presented is None and (session := self.session(request)) is not None:
            return await self._permitted(session, request)
        shown = certificates.read(request.get_extra_info("peercert"))
        if presented is None and shown is not None:
            return await self._by_certificate(shown, request)
        if http.tokens or http.asks_for_certificates:
            return await self._by_token(_given(presented, http), request)
        if needed(request.method, request.path) == "read":
            return ANONYMOUS
        raise ProblemDetails(403, _READ_ONLY)

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
        return await self._permitted(caller, request)

    async def _permitted(self, caller: Caller, request: web.Request) -> Caller:
        """The caller of a token or session, if its scopes are enough."""
        scope = needed(request.method, request.path)
        if scope in caller.scopes:
            return caller
        await self._refused("token", caller.name, request)
        challenge = f'{CHALLENGE}, error="insufficient_scope"'
        sentence = f"This needs the scope {scope}, which the token {caller.name} does not have."
        raise ProblemDetails(403, sentence, WWW_Authenticate=challenge)

    def session(self, request: web.Request) -> Caller | None:
        """The caller of the session that the cookie proves, with its key if it has one.

        What changes something must also come from a page of this server, and say so.
        """
        key, tokens = session_key(request), self.context.runtime.config.http.tokens
        for name in session_ids(request):
            caller = self.context.sessions.find(name, key, tokens)
            if caller is not None:
                if request.method not in SAFE_METHODS and "Origin" not in request.headers:
                    sentence = "A change with a session needs an Origin header, as browsers send."
                    raise ProblemDetails(403, sentence)
                return caller
        return None

    def still_reads(self, request: web.Request, caller: Caller) -> bool:
        """Whether the token or session of a long request has not ended since it began."""
        if caller.by not in {"token", "session"}:
            return True
        if caller.by == "session":
            now = self.session(request)
        else:
            presented = bearer(request.headers.get("Authorization")) or ""
            now, _ = who(presented, self.context.runtime.config.http.tokens)
        return now is not None and "read" in now.scopes

    async def log_in(self, request: web.Request, token: str | None, code: str | None) -> str:
        """The name of the token that a log-in proves; raises the problem document otherwise."""
        tokens = self.context.runtime.config.http.tokens
        if not tokens:
            raise ProblemDetails(403, _READ_ONLY)
        if code is not None:
            found: TokenSettings | Caller | None = self.context.sessions.redeem(code, tokens)
        else:
            found, _ = who(token or "", tokens)
        if found is None:
            await self._refused("token", "unknown", request)
            what = "token" if code is None else "code, or it has been used or has expired"
            raise ProblemDetails(401, f"This bridge does not know this {what}.")
        return found.name

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
            return Caller(shown.subject, "http", frozenset({"read"}), by="certificate")
        if request.path != VOTES:
            raise ProblemDetails(
                403, "A client certificate allows reading and voting; this needs the scope operate."
            )
        approver = certified(self.context.runtime.config.approvals.allow, shown.subject)
        if approver is None:
            await self._refused("certificate", shown.subject, request)
            sentence = f"The certificate of {shown.subject} is not in approvals.allow."
            raise ProblemDetails(403, sentence, more={"reason": "unauthorized"})
        scopes: frozenset[Scope] = frozenset({"read", "approve"})
        return Caller(shown.subject, "http", scopes, approver, by="certificate")

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


AUTHENTICATOR = web.AppKey("authenticator", Authenticator)
