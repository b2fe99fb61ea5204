"""Find plugins by entry point; ours and third-party ones in the same way."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from bridge.common.errors import Misconfigured

P = TypeVar("P")


@cache
def installed(group: str) -> Mapping[str, EntryPoint]:
    """Looked up only once: it opens a file of every installed package."""
    return {point.name: point for point in entry_points(group=group)}


def find(group: str, word: str, kind: str, wanted: type[P]) -> P:
    """Return the plugin *kind* of a group and import its module, or raise `Misconfigured`."""
    known = installed(group)
    if kind not in known:
        # It may have been installed since the lookup, and a reload asks for it.
        installed.cache_clear()
        known = installed(group)
    if kind not in known:
        names = ", ".join(sorted(known))
        hint = f"choose from {names}" if known else "install the package (pip install -e .)"
        raise Misconfigured(f"there is no {word} type {kind!r}; {hint}")
    try:
        plugin = known[kind].load()
    except (ImportError, AttributeError) as error:
        problem = _missing(known[kind], error)
        raise Misconfigured(f"{word} type {kind!r} cannot be loaded: {problem}") from error
    if not isinstance(plugin, wanted):
        value = known[kind].value
        raise Misconfigured(f"{word} type {kind!r}: {value} is not a {wanted.__name__}")
    return plugin


def _missing(point: EntryPoint, error: ImportError | AttributeError) -> str:
    """Why a plugin cannot be loaded; names the extra of its package that has the plugin's name."""
    package = point.dist
    if package is None or not isinstance(error, ModuleNotFoundError):
        return str(error)
    if point.name not in (package.metadata.get_all("Provides-Extra") or ()):
        return str(error)
    return f"{error}; install it with: pip install '{package.name}[{point.name}]'"
