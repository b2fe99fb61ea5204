"""Scheduled events over HTTP: pending and past, one with its history, and the stream."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from bridge.core.cloudevent import short_type
from bridge.core.ids import safe_id
from bridge.core.observer import Observer
from bridge.core.state import Tracked
from bridge.journal import views
from bridge.journal.grants import grant_of
from bridge.journal.store import Store
from bridge.journal.votes import counted_votes, votes_ever
from bridge.policy.judge import Rules
from bridge.runtime.runtime import Runtime
from bridge.web.access.authentication import AUTHENTICATOR
from bridge.web.access.middleware import CALLER
from bridge.web.api import shapes
from bridge.web.api.event_filter import EventFilter, flag, read_filter
from bridge.web.context import CONTEXT
from bridge.web.problems import not_found
from bridge.web.stream import Cursor, stream

MOST_PENDING = 1000
MOST_VOTES = 1000
routes = web.RouteTableDef()
_Json = dict[str, Any]


@routes.get("/api/v1/events")
async def events(request: web.Request) -> web.Response:
    """Pending events, the most urgent first, then past ones, the latest first."""
    context, asked = request.app[CONTEXT], read_filter(request.query)
    reader = _Reader.of(context.runtime)

    def read(store: Store) -> _Json:
        found, more = reader.page(store, asked)
        return {"events": found, "next": None if more is None else str(more)}

    return await context.reads.answer(context.runtime.journal, asked, read)


@routes.get("/api/v1/events/{eventId:[^/]+}")
async def event(request: web.Request) -> web.Response:
    runtime, given = request.app[CONTEXT].runtime, request.match_info["eventId"]
    reader, kept = _Reader.of(runtime), runtime.status.refusals.latest()
    body = await runtime.journal.run(lambda store: reader.one(store, given))
    if body is None:
        not_found(f"The journal has no scheduled event {given[:128]!r}.")
    published = [row["cloudevent"] for row in body["history"] if _is_refusal(row["cloudevent"])]
    body["refusals"] = shapes.refusals(published, kept, body["eventId"].upper())
    return web.json_response(body)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads events from the journal, in its thread, as they look at one moment."""

    observer: Observer
    rules_for: Callable[[Tracked], Rules]
    now: datetime

    @classmethod
    def of(cls, runtime: Runtime) -> "_Reader":
        return cls(runtime.identity.observer, runtime.rules_for, datetime.now(UTC))

    def page(self, store: Store, asked: EventFilter) -> tuple[list[_Json], int | None]:
        """What the caller asks for, and where its next page begins."""
        pending = views.pending(store)
        past_only = asked.before is not None or asked.pending is False
        first = [] if past_only else self._open(store, pending, asked)
        if asked.pending:
            return first, None

        def wanted(told: _Json) -> bool:
            key = told["partitionkey"]
            return key not in pending and asked.takes(self._bare(key, told))

        found = views.latest(store, asked.limit, asked.before, wanted)
        past = [self._shown(store, one["partitionkey"], one, None) for one in found.events]
        return first + past, found.next

    def one(self, store: Store, given: str) -> _Json | None:
        """One event with its votes and its history; None if the journal has none."""
        key, rows, known = _history(store, given)
        if not rows and known is None:
            return None
        told = next((row["cloudevent"] for row in reversed(rows) if _shows_state(row)), None)
        body = self._shown(store, key, told, known)
        cast = votes_ever(store, body["eventId"] or given.upper(), MOST_VOTES + 1)
        return {
            **body,
            "votes": [{**shapes.vote(one), "life": one.life} for one in cast[:MOST_VOTES]],
            "history": shapes.history(rows),
            "more": len(cast) > MOST_VOTES or views.history_length(store, key) > len(rows),
        }

    def _open(
        self, store: Store, pending: Mapping[str, Tracked], asked: EventFilter
    ) -> list[_Json]:
        """The pending events, the most urgent first; at most so many."""
        urgent = sorted(pending.items(), key=lambda one: _urgency(one[1]))[:MOST_PENDING]
        found = [
            self._shown(store, key, views.last_state(store, key), known) for key, known in urgent
        ]
        return [one for one in found if asked.takes(one)]

    def _bare(self, key: str, told: _Json | None, known: Tracked | None = None) -> _Json:
        return shapes.event(key, told, known, self.observer, self.now)

    def _shown(self, store: Store, key: str, told: _Json | None, known: Tracked | None) -> _Json:
        return {
            **self._bare(key, told, known),
            "times": shapes.times(views.milestones(store, key)),
            "approvals": None if known is None else self._approvals(store, known),
        }

    def _approvals(self, store: Store, known: Tracked) -> _Json:
        rules = self.rules_for(known)
        counted = counted_votes(store, known, rules)
        standing = shapes.Standing(
            counted.judge(self.now),
            counted.held(self.now),
            len(counted.votes),
            grant_of(store, (known.event.key, known.life)),
        )
        return shapes.approvals_on(standing, rules)


def _urgency(known: Tracked) -> tuple[bool, str]:
    due = known.event.not_before
    return due is not None, due.isoformat() if due else ""


def _history(store: Store, given: str) -> tuple[str, list[_Json], Tracked | None]:
    """Find by EventId in any case, or by the hash that replaces an unusual one."""
    pending = views.pending(store)
    for key in dict.fromkeys((safe_id(given.upper()), safe_id(given))):
        rows = [row for row in views.history(store, key) if "correlationid" in row["cloudevent"]]
        if rows or key in pending:
            return key, rows, pending.get(key)
    return given, [], None


def _shows_state(row: _Json) -> bool:
    return "status" in row["cloudevent"]["data"] and "rank" in row["cloudevent"]["data"]


def _is_refusal(cloudevent: _Json) -> bool:
    return short_type(str(cloudevent["type"])) == "approval.refused"


@routes.get("/api/v1/stream", allow_head=False)
async def open_stream(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    refusals = context.runtime.status.refusals if flag(request.query, "strays") else None
    cursor = Cursor(context.runtime.journal, context.streams.batches, refusals)
    authenticator, caller = request.app.get(AUTHENTICATOR), CALLER.get()

    def may() -> bool:
        return authenticator is None or authenticator.still_reads(request, caller)

    return await stream(request, cursor, context.streams, may)
