"""Placeholders such as `{vm_name}` in topics, client ids and paths."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bridge.common.errors import Unavailable

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~()-]")


def _unheard(_: Unavailable) -> None:
    """Do nothing: no one listens."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bridge runs: the values of `{vm_name}` and other placeholders.

    `sink` is the sink's name in the configuration. A sink may call `lost` when it learns between
    two batches that the connection is gone: then it is entered again immediately. `scope` says
    which scheduled events the bridge publishes.
    """

    names: Mapping[str, str | None] = field(default_factory=dict)
    sink: str = ""
    scope: Literal["own", "all"] = "own"
    lost: Callable[[Unavailable], None] = field(default=_unheard, compare=False, repr=False)

    NAMES = ("observer", "vm_name", "vm_id", "subscription", "resource_group", "location")

    def fill(self, template: str, **more: str) -> str:
        """Fill in the names; characters that could leave a topic level or directory become `_`.

        Raises `Unavailable` while a required name is unknown.
        """

        def value(match: re.Match[str]) -> str:
            found = more.get(match[1]) or self.names.get(match[1])
            if not found:
                raise Unavailable(f"{{{match[1]}}} is not known yet")
            safe = _UNSAFE.sub("_", found)
            return safe if safe.strip(".") else "_"

        return _PLACEHOLDER.sub(value, template)

    @classmethod
    def validate(cls, template: str, *more: str) -> str:
        """Return *template*, or raise ValueError when it contains an unknown name.

        An unclosed brace is an error too: as literal text, a whole fleet would share one name.
        """
        allowed = (*more, *cls.NAMES)
        for name in _PLACEHOLDER.findall(template):
            if name not in allowed:
                raise ValueError(f"{{{name}}} is unknown; choose from {', '.join(allowed)}")
        if re.search("[{}]", _PLACEHOLDER.sub("", template)):
            raise ValueError(f"{template!r} has unbalanced braces; write {{vm_name}}")
        return template
