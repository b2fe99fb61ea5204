"""Blocking calls, one after the other, for several callers."""

import asyncio
import threading

import pytest
from support.until import until

from sinks._lane import Lane


async def test_a_call_gives_its_result_or_raises_what_it_raised():
    lane = Lane()
    assert await lane.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await lane.run(lambda: 1 // 0)
    assert await lane.run(lambda: 8) == 8


async def test_a_call_that_hangs_can_be_left_and_none_overtakes_it():
    lane, released, done = Lane(), threading.Event(), []

    def hang() -> None:
        released.wait(10)
        done.append("first")

    first = asyncio.ensure_future(lane.run(hang))
    await until(lambda: any(t.name == "sink-lane" for t in threading.enumerate()))
    first.cancel()
    await asyncio.wait({first})
    assert first.cancelled()
    second = asyncio.ensure_future(lane.run(lambda: done.append("second")))
    await asyncio.wait({second}, timeout=0.05)
    assert done == []
    released.set()
    await second
    assert done == ["first", "second"]


async def test_a_thread_of_a_lane_keeps_no_process_from_leaving():
    assert await Lane().run(lambda: threading.current_thread().daemon)
