"""How long one batch may take: results come before the bridge stops waiting for them."""

from bridge.plugins import SinkSettings

_OF_TIMEOUT = 0.9


def batch_limit(settings: SinkSettings) -> float:
    """Seconds for one batch, and for connecting: most of `retry.timeout`."""
    return settings.retry.timeout * _OF_TIMEOUT
