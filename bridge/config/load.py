"""Find the configuration file and read it into typed values, or report every problem in it."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bridge import platform
from bridge.common.fields import Settings
from bridge.config.contradictions import useless
from bridge.config.errors import ConfigError, ConfigProblem, explain, mask, write_path
from bridge.config.models import Config, ConfigFile
from bridge.config.plugin_sections import build_sinks, build_sources, conflicts
from bridge.config.syntax import KeyPath, MalformedYaml, Parsed, parse

LARGEST_FILE = 1024**2
_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)(\})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT_SINKS = {"stdout": {"type": "stdout"}}


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Read *path*, else the file in `SEB_CONFIG`, else the system's file, else use defaults.

    Raises `ConfigError`, which names every problem.
    """
    file = _find(path, environ)
    used: dict[str, str] = {}
    parsed, origin = Parsed(), None
    if file is not None:
        content = _read(file)
        origin = ConfigFile(file, _sha256(content))
        parsed = _parse(file, content, lambda text: _fill(text, environ, used), used)
    config, problems = _build(parsed.data, origin)
    if config is None:
        problems.sort(key=lambda problem: parsed.lines.get(_nearest(problem.path, parsed), 0))
        raise ConfigError(mask(_located(file, parsed, problem), used) for problem in problems)
    return config


def skim(path: Path | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """The file as plain data, without any check; a variable that is not set stays `${NAME}`.

    Raises `Illegible`, and `ConfigError` if *path* does not exist: it is mistyped.
    """
    file = _find(path, environ)
    if file is None:
        return {}
    text = ""
    try:
        text = _read(file)
        return _parse(file, text, lambda value: _known(value, environ), {}).data or {}
    except ConfigError as error:
        if path is not None and not path.exists():
            raise
        raise Illegible(error.problems, text) from None


class Illegible(ConfigError):
    """The file cannot be read, or is not YAML; `text` is what was read."""

    def __init__(self, problems: Iterable[str], text: str) -> None:
        super().__init__(problems)
        self.text = text


def fingerprint(config: Config) -> str:
    """SHA-256 of the effective configuration; secrets count by location, never by value."""
    plain = config.model_dump(
        mode="json", exclude={"sinks": True, "approvals": {"sources"}}, fallback=str
    )
    named = {"sinks": config.sinks, "approval sources": config.approvals.sources}
    for word, each in named.items():
        plain[word] = {n: one.model_dump(mode="json", fallback=str) for n, one in each.items()}
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def differs(config: Config) -> bool | None:
    """Whether the file has changed since *config* was read from it; None if there is no file.

    Raises `ConfigError` if it can no longer be read.
    """
    return None if config.file is None else _sha256(_read(config.file)) != config.file_sha256


def changes(old: Config, new: Config) -> list[str]:
    """The keys whose values differ, such as `http.tokens` and `sinks.pager`; never the values."""
    before, after = _by_key(old), _by_key(new)
    return sorted(
        key
        for key in before.keys() | after.keys()
        if key not in before or key not in after or before[key] != after[key]
    )


def _by_key(config: Config) -> dict[str, object]:
    """The values under keys of two words, or of one if that is all there is."""
    found: dict[str, object] = {}
    for name, value in config:
        inner = dict(value) if isinstance(value, Settings | Mapping) else None
        if name == "approvals":
            inner = {("from" if key == "sources" else key): one for key, one in value}
        found |= {name: value} if inner is None else {f"{name}.{k}": v for k, v in inner.items()}
    return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    if path is not None:
        return path
    if named := environ.get("SEB_CONFIG"):
        return Path(named)
    default = platform.config_file()
    return default if default.exists() else None


def _parse(file: Path, text: str, fill: Callable[[str], str], used: Mapping[str, str]) -> Parsed:
    try:
        parsed = parse(text, fill)
    except MalformedYaml as error:
        place = file if error.line is None else f"{file}:{error.line}"
        raise ConfigError([mask(f"{place}: {error}", used)]) from None
    if not isinstance(parsed.data, dict | None):
        raise ConfigError([f"{file}: must be a mapping with keys such as source and sinks"])
    return parsed


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read: {error.strerror}"]) from None
    if len(content) > LARGEST_FILE:
        raise ConfigError([f"{file}: is larger than 1MiB; no configuration is that large"])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError([f"{file}: is not UTF-8 text"]) from None


def _fill(text: str, environ: Mapping[str, str], used: dict[str, str]) -> str:
    """Replace environment variables; their values are text and are not expanded again."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "${"
        if match[2] is None or not _NAME.fullmatch(name):
            raise ValueError("has a ${ that is not ${NAME}; write $${ for a literal ${")
        if name not in environ:
            raise ValueError(f"${{{name}}} is not set in the environment")
        used[name] = environ[name]
        return environ[name]

    return _VARIABLE.sub(value, text)


def _known(text: str, environ: Mapping[str, str]) -> str:
    try:
        return _fill(text, environ, {})
    except ValueError:
        return text


def _build(data: Any, origin: ConfigFile | None) -> tuple[Config | None, list[ConfigProblem]]:
    """Treat an empty section as absent: everything in it may be commented out."""
    given = {key: value for key, value in (data or {}).items() if value is not None}
    written = given.pop("sinks", None) or _DEFAULT_SINKS
    sinks, problems = build_sinks(written)
    asked = given.get("approvals")
    if isinstance(asked, dict) and "from" in asked:
        sources, more = build_sources(asked["from"] or {}, written, sinks, asked.get("allow"))
        given["approvals"] = {**asked, "from": sources}
        problems += more
    try:
        config = Config.model_validate({**given, "sinks": sinks}, context={"file": origin})
    except ValidationError as error:
        return None, [*explain(error, Config, given), *problems]
    problems = problems or [
        *useless(config.approvals, config.http),
        *conflicts(config.sinks, config.approvals.sources),
    ]
    return (None if problems else config), problems


def _located(file: Path | None, parsed: Parsed, problem: ConfigProblem) -> str:
    """`FILE:LINE: KEY: PROBLEM`, with the line of the nearest key that is in the file."""
    path = _nearest(problem.path, parsed)
    place = f"{file}:{parsed.lines[path]}" if path else str(file or "built-in defaults")
    key = write_path(problem.path)
    return f"{place}: {key}: {problem.text}" if key else f"{place}: {problem.text}"


def _nearest(path: KeyPath, parsed: Parsed) -> KeyPath:
    while path and path not in parsed.lines:
        path = path[:-1]
    return path
