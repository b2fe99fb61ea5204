"""What a sink's plugin gives back, as a test wants to have it."""

from typing import Any

from bridge.plugins import Place, Result, SinkPlugin, SinkSettings, Unavailable


async def proved(plugin: SinkPlugin[Any], settings: SinkSettings, place: Place) -> str:
    """What `seb check --connect` says."""
    assert plugin.check is not None
    return await plugin.check(settings, place)


def pause_of(result: Result) -> float:
    """The seconds that the far side wants to be left alone."""
    assert isinstance(result, Unavailable)
    assert result.retry_after is not None
    return result.retry_after
