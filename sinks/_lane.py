"""Runs blocking calls one after the other, in threads that never delay the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Lane:
    """Runs one call at a time, each in a daemon thread of its own.

    A call that hangs (a dead file server, a reader that does not read) can be canceled as far as
    its caller goes; the thread cannot. The next call waits until it is done, so order is kept.
    A daemon thread does not keep the process from ending, as `asyncio.to_thread` would.
    """

    def __init__(self) -> None:
        self._running: Future[Any] | None = None

    async def run(self, call: Callable[[], T]) -> T:
        while (before := self._running) is not None and not before.done():
            with suppress(Exception):
                await asyncio.wrap_future(before)
        mine: Future[T] = Future()
        mine.set_running_or_notify_cancel()  # it can no longer be canceled
        self._running = mine
        threading.Thread(target=self._do, args=(call, mine), name="sink-lane", daemon=True).start()
        return await asyncio.wrap_future(mine)

    def _do(self, call: Callable[[], T], mine: Future[T]) -> None:
        # A method, so that the thread keeps a reference to its lane.
        try:
            mine.set_result(call())
        except BaseException as error:  # noqa: BLE001  the caller awaits it and gets it
            mine.set_exception(error)
