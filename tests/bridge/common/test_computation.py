"""Long computations happen in a thread, short ones where they are asked for."""

import gc
import threading

import pytest
from support.turns import turns

from bridge.common.computation import computed


def compute() -> int:
    return sum(number % 7 for number in range(1_000_000))


@pytest.mark.parametrize("long", [True, False])
async def test_the_result_is_the_same_in_a_thread(long: bool):
    assert await computed(compute, long=long) == compute()
    here = await computed(threading.current_thread, long=long) is threading.current_thread()
    assert here is not long


async def test_what_it_raises_is_raised():
    with pytest.raises(ValueError, match="invalid literal"):
        await computed(lambda: int("x"), long=True)


async def test_the_loop_serves_others_during_a_long_computation():
    async with turns() as found:
        await computed(compute, long=True)
    assert found.longest < found.whole / 4


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_long_computation_is_not_interrupted_by_searches_for_cycles(enabled: bool):
    (gc.enable if enabled else gc.disable)()
    try:
        assert not await computed(gc.isenabled, long=True)
        assert gc.isenabled() is enabled
        with pytest.raises(ZeroDivisionError):
            await computed(lambda: 1 // 0, long=True)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
