"""Where the running bridge is. A file with mistakes in it must not lock an operator out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bridge.config import Listen
from bridge.config.load import Illegible, skim
from bridge.config.models import DEFAULT_LISTEN
from bridge.config.values import Directory
from bridge.platform import state_dirs

_STATE_DIR = re.compile(r"^state_dir:[ \t]+['\"]?([^'\"#\n]+?)['\"]?[ \t]*(?:#.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Location:
    """A socket or a URL that the user names; else what the configuration says.

    `warnings` are sentences about what could not be read there.
    """

    socket: Path | None = None
    url: str | None = None
    state_dirs: tuple[Path, ...] = ()
    listen: Listen | None = DEFAULT_LISTEN
    tls: bool = False
    certificate: Path | None = None
    warnings: tuple[str, ...] = ()


def read_location(path: Path | None, environ: Mapping[str, str]) -> Location:
    """Read only where the bridge is, whatever else is in the file.

    Raises `ConfigError` if *path* does not exist.
    """
    try:
        data = skim(path, environ)
    except Illegible as error:
        warning = f"{error.problems[0]}; assuming {{what}}."
        return _assumed(error.text, warning)
    http = data.get("http")
    http = http if isinstance(http, dict) else {}
    tls = http.get("tls")
    warnings: list[str] = []
    return Location(
        state_dirs=_directories(data.get("state_dir"), warnings),
        listen=_listen(http.get("listen", DEFAULT_LISTEN), warnings),
        tls=tls is not None,
        certificate=_certificate(tls),
        warnings=tuple(warnings),
    )


def _assumed(text: str, warning: str) -> Location:
    """The default addresses, for a file that is not YAML; its state directory may be legible."""
    found = _STATE_DIR.search(text)
    what = f"state_dir: {found[1]}" if found else "the default state_dir"
    said = warning.format(what=f"{what} and the default http.listen")
    return Location(state_dirs=_directories(found and found[1], []), warnings=(said,))


def _directories(value: object, warnings: list[str]) -> tuple[Path, ...]:
    if value is None:
        return tuple(state_dirs())
    try:
        if isinstance(value, str) and "${" not in value:
            return (TypeAdapter(Directory).validate_python(value),)
    except ValidationError:
        pass
    warnings.append("state_dir in the configuration cannot be used; assuming the default one.")
    return tuple(state_dirs())


def _listen(value: object, warnings: list[str]) -> Listen | None:
    if value is None:
        return None
    try:
        return Listen.parse(value)
    except ValueError:
        warnings.append(f"http.listen in the configuration is wrong; assuming {DEFAULT_LISTEN}.")
        return DEFAULT_LISTEN


def _certificate(tls: Any) -> Path | None:
    named = tls.get("certificate") if isinstance(tls, dict) else None
    return Path(named) if isinstance(named, str) else None
