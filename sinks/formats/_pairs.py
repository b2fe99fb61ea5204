"""Pairs of key and value, for formats of one line: each key once, and what was cut is named."""

from collections.abc import Callable, Mapping, Sequence

from sinks.formats._text import cut, listed


class Pairs:
    """Collects pairs in order, leaves out what is empty, and remembers what it had to cut."""

    def __init__(self, clean: Callable[[str], str], most: Mapping[str, int], usual: int) -> None:
        self.values: dict[str, str] = {}
        self.short: list[str] = []
        self._clean = clean
        self._most = most
        self._usual = usual

    def put(self, key: str, value: str | int | None, label: str | None = None) -> None:
        whole = self._clean("" if value is None else str(value))
        self._keep(key, whole, cut(whole, self._room(key)), label)

    def put_names(
        self, key: str, names: Sequence[str], missing: int, label: str | None = None
    ) -> None:
        """A list with commas; *missing* are those that were gone before it came to us."""
        clean = [self._clean(name) for name in names]
        self._keep(key, ",".join(clean), listed(clean, self._room(key), missing), label)

    def _room(self, key: str) -> int:
        return self._most.get(key, self._usual)

    def _keep(self, key: str, whole: str, fitting: str, label: str | None) -> None:
        if not fitting:
            return
        if fitting != whole:
            self.short.append(key)
        self.values[key] = fitting
        if label:
            self.values[f"{key}Label"] = label
