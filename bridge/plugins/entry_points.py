"""Find plugins by entry point; ours and third-party ones in the same way."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from bridge.common.errors import Misconfigured

P = TypeVar("P")


@cache
def points(group: str) -> Mapping[str, Sequence[EntryPoint]]:
    """All entry points of a group by name."""
    found: dict[str, list[EntryPoint]] = {}
    for point in _every().select(group=group):
        found.setdefault(point.name, []).append(point)
    return found


@cache
def _every() -> Any:
    """The entry points of all groups, looked up once: it opens a file of every package."""
    return entry_points()


def look_again() -> None:
    """Forget what was found: a package may have been installed since."""
    _every.cache_clear()
    points.cache_clear()


def installed(group: str) -> Mapping[str, EntryPoint]:
    """The plugins of a group by name."""
    return {name: same[0] for name, same in points(group).items()}


def find(group: str, word: str, kind: str, wanted: type[P]) -> P:
    """Return the plugin *kind* of a group and import its module, or raise `Misconfigured`."""
    point = _only(group, word, kind)
    try:
        plugin = point.load()
    except (ImportError, AttributeError) as error:
        problem = _missing(point, error)
        raise Misconfigured(f"{word} type {kind!r} cannot be loaded: {problem}") from error
    if not isinstance(plugin, wanted):
        raise Misconfigured(f"{word} type {kind!r}: {point.value} is not a {wanted.__name__}")
    return plugin


def _only(group: str, word: str, kind: str) -> EntryPoint:
    """The one entry point of that name: which of two would be used depends on an accident."""
    if kind not in points(group):
        # It may have been installed since the lookup, and a reload asks for it.
        look_again()
    known = points(group)
    if kind not in known:
        names = ", ".join(sorted(known))
        hint = f"choose from {names}" if known else "install the package (pip install -e .)"
        raise Misconfigured(f"there is no {word} type {kind!r}; {hint}")
    point, *others = known[kind]
    if others:
        packages = " and ".join(sorted(_package(one) for one in known[kind]))
        raise Misconfigured(
            f"{len(known[kind])} packages have a {word} type {kind!r}: {packages}; keep one of them"
        )
    return point


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name if point.dist else 'an unknown package'} ({point.value})"


def _missing(point: EntryPoint, error: ImportError | AttributeError) -> str:
    """Why a plugin cannot be loaded; names the extra of its package that has the plugin's name."""
    package = point.dist
    if package is None or not isinstance(error, ModuleNotFoundError):
        return str(error)
    if point.name not in (package.metadata.get_all("Provides-Extra") or ()):
        return str(error)
    return f"{error}; install it with: pip install '{package.name}[{point.name}]'"
