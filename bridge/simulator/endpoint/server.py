"""The simulated metadata service over HTTP, as one VM sees it."""

import asyncio
import os
import socket
import struct
from collections import deque
from dataclasses import replace
from datetime import timedelta

from aiohttp import web

from bridge.simulator.endpoint.damage import OF_THE_REAL_ANSWER, spoil
from bridge.simulator.endpoint.service import (
    Request,
    approval_facts,
    note_approval,
    objection,
    respond,
)
from bridge.simulator.endpoint.wire import WireResponse, error, http_date, read_start_requests
from bridge.simulator.world.building_blocks import VM
from bridge.simulator.world.faults import Fault
from bridge.simulator.world.world import World

_SERVER = "IMDS/simulated"
# Lingering for no time turns a close into a reset; on Windows, the numbers are shorter.
_NO_LINGER = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class ServerView:
    """Answers one VM's requests: faults first, then the rate limit, then Azure's own checks."""

    def __init__(self, world: World, vm: VM) -> None:
        self._world = world
        self._vm = vm
        self._recent: deque[float] = deque()

    async def handle(self, http: web.Request) -> web.StreamResponse:
        request = await _read(http)
        self._world.advance()
        met = self._world.faults.hit(request.method, request.category or "", self._vm.name)
        delay = sum(fault.delay for fault in met if fault.kind == "delay")
        if delay:
            await asyncio.sleep(delay / self._world.speed)
        others = [fault for fault in met if fault.kind not in {"delay", "skew"}]
        answer = await self._answer(request, others[0] if others else None)
        skew = timedelta(seconds=sum(fault.skew for fault in met if fault.kind == "skew"))
        return await _send(http, answer, http_date(self._world.clock() + skew))

    async def _answer(self, request: Request, fault: Fault | None) -> WireResponse:
        if fault is None:
            return await self._real_answer(request)
        request = replace(request, spoilt_by=fault.kind)
        if fault.processed or fault.kind in OF_THE_REAL_ANSWER:
            return spoil(fault, await self._real_answer(request))
        answer = spoil(fault, WireResponse())
        if (request.category, request.method) == ("scheduledevents", "POST"):
            facts = approval_facts(self._vm, request)
            status = None if answer.reset else answer.status
            note_approval(self._world, _ids(request), **facts, status=status)
        return answer

    async def _real_answer(self, request: Request) -> WireResponse:
        if self._too_many():
            return error(429, "Too many requests")
        refusal = objection(self._world, request)
        if refusal is not None:
            return refusal
        if request.category == "scheduledevents":
            await self._until_enabled()
        self._world.advance()
        return respond(self._world, self._vm, request)

    async def _until_enabled(self) -> None:
        self._world.advance()
        ready = self._world.touch(self._vm.name)
        wait = (ready - self._world.clock()).total_seconds()
        if wait > 0:
            await asyncio.sleep(wait)

    def _too_many(self) -> bool:
        """Whether this request exceeds the limit of the last second, in real time."""
        limit = self._world.scenario.rate_limit
        if limit is None:
            return False
        now = asyncio.get_running_loop().time()
        while self._recent and self._recent[0] <= now - 1:
            self._recent.popleft()
        if len(self._recent) >= limit:
            return True
        self._recent.append(now)
        return False


async def _read(http: web.Request) -> Request:
    return Request(
        method=http.method,
        path=http.path,
        query=tuple(http.query.items()),
        headers={name.lower(): value for name, value in http.headers.items()},
        body=await http.read(),
    )


def _ids(request: Request) -> list[str] | None:
    try:
        return read_start_requests(request.body)[0]
    except ValueError:
        return None


async def _send(http: web.Request, answer: WireResponse, date: str) -> web.StreamResponse:
    headers = {**answer.headers, "Date": date, "Server": _SERVER}
    if answer.reset:
        _reset(http)
        return web.Response()
    if answer.missing:
        return await _send_short(http, answer, headers)
    return web.Response(
        status=answer.status,
        body=answer.body,
        content_type=answer.content_type,
        headers=headers,
    )


async def _send_short(
    http: web.Request, answer: WireResponse, headers: dict[str, str]
) -> web.StreamResponse:
    """Promise more than is sent, then hang up."""
    response = web.StreamResponse(status=answer.status, headers=headers)
    response.content_type = answer.content_type
    response.content_length = len(answer.body) + answer.missing
    response.force_close()
    await response.prepare(http)
    await response.write(answer.body)
    return response


def _reset(http: web.Request) -> None:
    if http.transport is not None:
        sock = http.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        http.transport.abort()
