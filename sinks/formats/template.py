"""Your own format: a Jinja template in a sandbox, filled with one CloudEvent.

In a template for JSON every value is escaped for JSON, so no text can break out.
"""

import difflib
import json
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.nodes import Template as Parsed
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import Field, PrivateAttr, model_validator

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings, Rejected
from sinks.formats._sentences import tell
from sinks.formats._text import escape_unsafe

MOST_STEPS = 10_000
FAILURES = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)
"""What filling a template may raise; the template causes all of it."""
_GLOBALS = ("dict", "namespace", "range")


class Faulty(ValueError):
    """The template cannot be used, and where it is wrong."""


class Steps:
    """What all `range` calls of one filling may yield together, so that nested loops end too."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def range(self, *bounds: int) -> range:
        wanted = range(*bounds)
        self._left -= len(wanted)
        if self._left < 0:
            raise SecurityError(f"range may yield {MOST_STEPS} numbers in all")
        return wanted


class _Written(str):
    """A value that is JSON already; Jinja's own marks are for HTML and do not count."""

    __slots__ = ()


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Without this, `"x" * 10**9` would be one small step for a template."""
        if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
            raise SecurityError(f"{operator} is not allowed here; * multiplies two numbers")
        return super().call_binop(context, operator, left, right)


def compile_template(text: str, variables: frozenset[str], *, escaped: bool) -> Template:
    """Raises `Faulty` for bad syntax and for a name that is not in *variables*."""
    sandbox = _Sandbox(
        undefined=StrictUndefined,
        finalize=_escape if escaped else _escape_unsafe,
        keep_trailing_newline=False,
    )
    sandbox.globals = {name: sandbox.globals[name] for name in _GLOBALS}
    sandbox.filters["json"] = _json
    try:
        parsed = sandbox.parse(text)
        _check_names(parsed, variables)
        return sandbox.from_string(text)
    except TemplateSyntaxError as error:
        raise Faulty(f"line {error.lineno}: {error.message}") from None


def _check_names(parsed: Parsed, variables: frozenset[str]) -> None:
    if any(True for _ in find_referenced_templates(parsed)):
        raise Faulty("there is no other template to include, import or extend")
    for name in sorted(find_undeclared_variables(parsed) - variables - set(_GLOBALS)):
        near = difflib.get_close_matches(name, sorted(variables), n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(sorted(variables))}"
        raise Faulty(f"{name}: unknown variable; {hint}")


def _json(value: Any) -> _Written:
    """The filter `json`: a whole value, quotes included."""
    if isinstance(value, StrictUndefined):
        str(value)  # which raises, and names it
    return _Written(escape_unsafe(json.dumps(value, ensure_ascii=False)))


def _escape(value: Any) -> Any:
    """What `{{ … }}` puts into JSON: the inside of a string, or another value as JSON has it."""
    if isinstance(value, _Written | StrictUndefined):
        return value
    text = escape_unsafe(json.dumps(value, ensure_ascii=False))
    return text[1:-1] if isinstance(value, str) else text


def _escape_unsafe(value: Any) -> Any:
    """What `{{ … }}` puts into other text: no character that a terminal obeys."""
    return value if isinstance(value, StrictUndefined) else escape_unsafe(str(value))


LARGEST = 65536
"""The limit of a template, in characters, and of its output, in bytes."""
VARIABLES = frozenset(
    {
        "specversion", "type", "source", "id", "time", "subject", "datacontenttype", "dataschema",
        "partitionkey", "correlationid", "causationid", "observer", "severitynumber",
        "severitytext", "data", "headline", "sentence", "todo",
    }
)  # fmt: skip


class TemplateSettings(FormatSettings):
    """The template, inline or in a file, and the type of its output."""

    type: Literal["template"]
    template: str | None = Field(None, min_length=1, max_length=LARGEST)
    file: Path | None = Field(None, description="read when the configuration is loaded")
    content_type: str = Field(
        "application/json",
        pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+(; ?[a-z0-9-]+=[A-Za-z0-9._-]+)*$",
        description="if it ends in json, values are escaped and the output is checked",
    )
    _text: str = PrivateAttr("")

    @property
    def is_json(self) -> bool:
        return self.content_type.partition(";")[0].endswith("json")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        """Read once: a file that changes later takes effect at the next reload."""
        if (self.template is None) == (self.file is None):
            raise ValueError("needs either template or file")
        self._text = _read(self.file) if self.file else self.template or ""
        try:
            compile_template(self._text, VARIABLES, escaped=self.is_json)
        except Faulty as error:
            raise ValueError(f"{self.file or 'the template'}, {error}") from None
        return self

    def compiled(self) -> Template:
        return compile_template(self._text, VARIABLES, escaped=self.is_json)


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(LARGEST + 1)
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text") from None
    if not 0 < len(text) <= LARGEST:
        raise ValueError(f"{file} must have 1 to {LARGEST} characters")
    return text


def _encode(template: Template, checked: bool, cloudevent: CloudEvent) -> bytes:  # noqa: FBT001  by partial
    try:
        filled = _fill(template, _variables(cloudevent))
        if checked:
            json.loads(filled)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Rejected(f"the output of the template is not JSON: {error.msg} at {where}") from None
    except FAILURES as error:
        raise Rejected(f"the template cannot be filled: {error}") from None
    return filled


def _variables(cloudevent: CloudEvent) -> dict[str, Any]:
    told = tell(cloudevent)
    words = {"headline": told.headline, "sentence": told.sentence, "todo": told.todo}
    return {**cloudevent.envelope, **words, "range": Steps().range}


def _fill(template: Template, variables: dict[str, Any]) -> bytes:
    """Piece by piece, so that a runaway template is stopped early."""
    filled = b""
    for piece in template.generate(variables):
        filled += piece.encode("utf-8", "replace")
        if len(filled) > LARGEST:
            raise Rejected(f"the output of the template has more than {LARGEST} bytes")
    return filled


def _open(settings: TemplateSettings) -> Format:
    encode = partial(_encode, settings.compiled(), settings.is_json)
    return Format(encode, settings.content_type)


plugin = FormatPlugin(settings=TemplateSettings, open=_open)
