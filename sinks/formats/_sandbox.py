"""Jinja with its hands tied: no private attributes, no changes to what it is given, no runaways."""

import difflib
import json
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.nodes import Template as Parsed
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_STEPS = 10_000
FAILURES = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)
"""What filling a template may raise, all of it the template's own doing."""
_GLOBALS = ("dict", "namespace", "range")


class Faulty(ValueError):
    """The template cannot be used, and where it is wrong."""


class Steps:
    """What all `range` of one filling may yield together, so that loops in loops end too."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def range(self, *bounds: int) -> range:
        wanted = range(*bounds)
        self._left -= len(wanted)
        if self._left < 0:
            raise SecurityError(f"range may yield {MOST_STEPS} numbers in all")
        return wanted


class _Written(str):
    """JSON already; the marks of Jinja's own escaping, which is for HTML, do not count."""

    __slots__ = ()


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`"x" * 10**9` is one small step for a template."""
        if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
            raise SecurityError(f"{operator} is not allowed here; * multiplies two numbers")
        return super().call_binop(context, operator, left, right)


def compile_template(text: str, variables: frozenset[str], *, escaped: bool) -> Template:
    """Raises `Faulty` for bad syntax and for a name that is none of *variables*."""
    sandbox = _Sandbox(
        undefined=StrictUndefined,
        finalize=_escape if escaped else None,
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
        there_are = (
            f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(variables))}"
        )
        raise Faulty(f"{name}: unknown variable; {there_are}")


def _json(value: Any) -> _Written:
    """The filter `json`: a whole value, quotes included."""
    if isinstance(value, StrictUndefined):
        str(value)  # which raises, and names it
    return _Written(json.dumps(value, ensure_ascii=False))


def _escape(value: Any) -> Any:
    """What `{{ … }}` puts into JSON: the inside of a string, or another value as JSON has it."""
    if isinstance(value, _Written | StrictUndefined):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text[1:-1] if isinstance(value, str) else text
