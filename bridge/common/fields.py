"""Types of configuration values: durations, sizes, secrets, addresses."""

import errno
import re
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
LARGEST_SECRET = 64 * 1024
_LONGEST = 36500 * 86400.0
"""Of durations, in seconds: a sum with the time must be a time."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SIZE = re.compile(r"(\d+) ?(B|KiB|MiB|GiB|kB|MB|GB)")


class Settings(BaseModel):
    """A part of the configuration: unknown keys are errors, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def parse_duration(value: object) -> float:
    """Seconds from `500ms`, `1s`, `5m`, `24h` or `7d`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a duration; write it like 500ms, 1s, 5m, 24h or 7d")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST:
        raise ValueError(f"a duration must be at most {write_duration(_LONGEST)}")
    return seconds


def parse_size(value: object) -> int:
    """Bytes from `64KiB`, `256MiB` or `1GB`."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a size; write it like 64KiB, 256MiB or 1GiB")
    return int(match[1]) * _SIZES[match[2]]


def write_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads back."""
    for unit in ("d", "h", "m", "s"):
        if seconds >= _UNITS[unit] and seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]:.0f}{unit}"
    return f"{round(seconds * 1000, 6):.6f}".rstrip("0").rstrip(".") + "ms"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "pattern": f"^{_DURATION.pattern}$", "examples": ["5s"]}),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"type": "string", "pattern": f"^{_SIZE.pattern}$", "examples": ["256MiB"]}),
]


def _beginning(path: Path) -> bytes:
    """The content of a file, if it is small enough to be a secret."""
    with path.open("rb") as file:
        found = file.read(LARGEST_SECRET + 1)
    if len(found) > LARGEST_SECRET:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST_SECRET} bytes", str(path))
    return found


class Secret:
    """Text that is never shown: given directly, or in a file that is read again when it changes."""

    __slots__ = ("_path", "_stamp", "_value")

    def __init__(self, value: str = "", *, path: Path | None = None) -> None:
        self._value = value
        self._path = path
        self._stamp: tuple[int, int] | None = None

    @property
    def file(self) -> Path | None:
        """The file that it is in, if it is in one."""
        return self._path

    def get(self) -> str:
        """The current value. Raises OSError when its file cannot be read."""
        if self._path is not None:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._value = _beginning(self._path).decode().strip()
                self._stamp = stamp
        return self._value

    def __repr__(self) -> str:
        return f"Secret(file={str(self._path)!r})" if self._path else "Secret(***)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return (self._path, self._path or self._value) == (other._path, other._path or other._value)

    def __hash__(self) -> int:
        return hash((self._path, self._path or self._value))

    @classmethod
    def parse(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value:
            return cls(value)
        if isinstance(value, dict) and set(value) == {"file"} and isinstance(value["file"], str):
            return cls(path=Path(value["file"]))
        # Keep the value out of the message: it may be the secret.
        raise ValueError("a secret must be text that is not empty, or {file: PATH}")

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: Any) -> dict[str, Any]:
        file = {"type": "object", "properties": {"file": {"type": "string"}}}
        return {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {**file, "required": ["file"], "additionalProperties": False},
            ],
            "writeOnly": True,
        }
