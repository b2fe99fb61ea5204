"""Configuration errors as sentences: file, line, key, problem, and what is allowed."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from bridge.common.fields import parse_duration, write_duration
from bridge.config.syntax import KeyPath
from bridge.plugins import Misconfigured

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_SAID = {
    "string_type": "must be text; put it in quotes",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "dict_type": "must be a mapping (key: value)",
    "mapping_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "model_attributes_type": "must be a mapping (key: value)",
    "path_type": "must be a path",
}
_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_LONGEST = 400


class ConfigError(Misconfigured):
    """The configuration is unusable; each line of the text is one problem."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ConfigProblem(NamedTuple):
    """One problem at one key."""

    path: KeyPath
    text: str


def explain(error: ValidationError, model: type[BaseModel], data: object) -> list[ConfigProblem]:
    """Explain in our own words what pydantic found when it read *data* as *model*."""
    found = error.errors(include_url=False)
    paths = [_path(item["loc"], data) for item in found]
    texts = [_text(item, model, _at(path, data)) for item, path in zip(found, paths, strict=True)]
    return list(dict.fromkeys(map(ConfigProblem, paths, texts)))


def unknown(name: str, allowed: Iterable[str]) -> str:
    """Say that a key is unknown, and suggest the nearest one."""
    import difflib  # noqa: PLC0415  a configuration without mistakes does not need it

    allowed = sorted(allowed)
    nearest = difflib.get_close_matches(name, allowed, n=1, cutoff=0.6)
    return f"unknown key; did you mean {nearest[0]}?" if nearest else _choice(allowed)


def _choice(allowed: list[str]) -> str:
    return f"unknown key; choose from {', '.join(allowed)}" if allowed else "unknown key"


def write_path(path: KeyPath) -> str:
    """Write a key path such as `http.tokens[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def mask(text: str, used: Mapping[str, str]) -> str:
    """Put `${NAME}` back where a value from the environment appears, and hide `USER:PASSWORD@`."""
    for name, value in used.items():
        if len(value) > 3:
            for shown in (value, repr(value)[1:-1]):
                text = text.replace(shown, f"${{{name}}}")
    text = " ".join(map(_without_password, text.split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _without_password(word: str) -> str:
    """An address without what is in front of its @; every plugin may quote a wrong one."""
    before, at, host = word.rpartition("@")
    if not at or ":" not in before:
        return word
    quote = before[:1] if before[:1] in "'\"" else ""
    scheme, mark, _ = before.removeprefix(quote).partition("://")
    return f"{quote}{scheme if mark else ''}{mark}***@{host}"


def _path(loc: KeyPath, data: object) -> KeyPath:
    """Keep only the keys in the file: pydantic also names the branches of a union."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        if isinstance(data, Mapping) and isinstance(part, str):
            if part in data or position == len(loc) - 1:
                path.append(part)
                data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            path.append(part)
            data = data[part]
    return tuple(path)


def _at(path: KeyPath, data: Any) -> Any:
    for part in path:
        data = data.get(part) if isinstance(data, Mapping) else data[part]
    return data


def _text(item: Any, model: type[BaseModel], given: Any) -> str:
    """*given* is the value in the file; pydantic may have converted it before it failed."""
    context = item.get("ctx", {})
    match item["type"]:
        case "extra_forbidden":
            return unknown(str(item["loc"][-1]), _keys([model], item["loc"][:-1]))
        case "missing":
            return f"is missing{_allowed(model, item['loc'])}"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            wrong = f"{given!r} is not allowed; it " if isinstance(given, str | int | float) else ""
            return f"{wrong}must be {context['expected']}{_meaning(model, item['loc'])}"
        case kind:
            return _limit(kind, given, context) or _other(kind, given, item["msg"])


def _allowed(model: type[BaseModel], loc: KeyPath) -> str:
    """The words to choose from, if the key takes one of a few."""
    for field in _fields([model], loc):
        if get_origin(field.annotation) is Literal:
            words = " or ".join(map(str, get_args(field.annotation)))
            return f"; write {words}{_meaning(model, loc)}"
    return ""


def _meaning(model: type[BaseModel], loc: KeyPath) -> str:
    """What the words mean, where the key explains each of them."""
    for field in _fields([model], loc):
        words = get_args(field.annotation)
        said = field.description or ""
        if words and all(f"{word}: " in said for word in words):
            return f" ({said})"
    return ""


def _limit(kind: str, given: object, context: Mapping[str, Any]) -> str | None:
    words, name = _LIMITS.get(kind, (None, ""))
    return words and f"must be {words} {_amount(given, context[name])}"


def _other(kind: str, given: object, message: str) -> str:
    if given is None:
        return "is empty; give it a value, or remove the key"
    return _SAID.get(kind) or message.replace("Input should", "must").replace(
        "String should", "must"
    )


def _amount(given: object, limit: float) -> str:
    """Write the limit as the value is written: `200ms` for a duration, else as a number."""
    if isinstance(limit, int):  # durations are floats; a bare 0 is both a duration and a number
        return f"{limit}"
    try:
        parse_duration(given)
    except ValueError:
        return f"{limit:g}"
    return write_duration(limit)


def _keys(models: list[type[BaseModel]], loc: KeyPath) -> set[str]:
    """The keys allowed at *loc*, in any branch of the unions along it."""
    models = _inside(models, loc)
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def _fields(models: list[type[BaseModel]], loc: KeyPath) -> list["FieldInfo"]:
    """The key at *loc*, in each branch that has it."""
    inside, name = _inside(models, loc[:-1]), str(loc[-1])
    return [model.model_fields[name] for model in inside if name in model.model_fields]


def _inside(models: list[type[BaseModel]], loc: KeyPath) -> list[type[BaseModel]]:
    for part in loc:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if fields:
            models = [inner for field in fields for inner in _models(field.annotation)]
    return models


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]
