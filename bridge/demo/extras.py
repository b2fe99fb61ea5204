"""The packages that the demo needs, and the sentence for users who lack them."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from bridge.common.errors import Misconfigured
from bridge.plugins.sinks import find_sink


class NotInstalled(Exception):
    """The extra `demo` is missing; the message says how to install it."""


def need(sink: str, modules: Iterable[str]) -> list[Any]:
    """Import the modules, and the sink of that type."""
    try:
        found = [import_module(name) for name in modules]
        find_sink(sink)
    except (ImportError, Misconfigured) as error:
        raise NotInstalled(
            f"the demo needs more packages ({error}): pip install 'scheduled-events-bridge[demo]'"
        ) from error
    return found
