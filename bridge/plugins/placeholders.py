"""Where the bridge runs, as templates in topics, client ids and paths may name it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bridge.common.errors import Unavailable

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~()-]")


def _unheard(_: Unavailable) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bridge runs, for `{vm_name}` and its like in topics, client ids and paths.

    `sink` is what the sink itself is called in the configuration. It may call `lost` when it learns
    between two batches that the far side is gone: then it is entered anew at once.
    """

    names: Mapping[str, str | None] = field(default_factory=dict)
    sink: str = ""
    lost: Callable[[Unavailable], None] = field(default=_unheard, compare=False, repr=False)

    NAMES = ("observer", "vm_name", "vm_id", "subscription", "resource_group", "location")

    def fill(self, template: str, **more: str) -> str:
        """Put the names in; characters that could leave a topic level or directory become `_`.

        Raises `Unavailable` while a name that is needed is not known yet.
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
        """Return *template*, or raise ValueError when it asks for a name that there is not.

        A brace that is not closed would be taken as it is, and one name would serve a whole fleet.
        """
        allowed = (*more, *cls.NAMES)
        for name in _PLACEHOLDER.findall(template):
            if name not in allowed:
                raise ValueError(f"{{{name}}} is not known; there are {', '.join(allowed)}")
        if re.search("[{}]", _PLACEHOLDER.sub("", template)):
            raise ValueError(f"{template!r} has a brace too few or too many; write {{vm_name}}")
        return template
