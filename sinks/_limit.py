"""The time limit of one batch: a sink answers before the bridge stops waiting."""

from bridge.plugins import SinkSettings

_OF_TIMEOUT = 0.9


def batch_limit(settings: SinkSettings) -> float:
    """The limit for one batch, and for connecting, in seconds: most of `retry.timeout`."""
    return settings.retry.timeout * _OF_TIMEOUT
