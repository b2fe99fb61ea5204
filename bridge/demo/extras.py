"""What the demo needs beyond the bridge, and the sentence for whoever has not got it."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from bridge.common.errors import Misconfigured
from bridge.plugins import find_sink


class NotInstalled(Exception):
    """The extra `demo` is missing; the sentence says how to get it."""


def need(sink: str, modules: Iterable[str]) -> list[Any]:
    """The modules, and a sink of that type."""
    try:
        found = [import_module(name) for name in modules]
        find_sink(sink)
    except (ImportError, Misconfigured) as error:
        raise NotInstalled(
            f"the demo needs the extra demo ({error}): pip install 'scheduled-events-bridge[demo]'"
        ) from error
    return found
