"""The results of a sink's plugin, in a form for tests."""

from typing import Any

from bridge.plugins import Place, Result, SinkPlugin, SinkSettings, Unavailable


async def proved(plugin: SinkPlugin[Any], settings: SinkSettings, place: Place) -> str:
    """What `seb check --connect` says."""
    assert plugin.check is not None
    return await plugin.check(settings, place)


def pause_of(result: Result) -> float:
    """The wait that the receiver asks for, in seconds."""
    assert isinstance(result, Unavailable)
    assert result.retry_after is not None
    return result.retry_after
