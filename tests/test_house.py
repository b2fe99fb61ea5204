"""The rules of the house that no other tool checks: size, words, and what is imported when."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for package in ("bridge", "sinks") for path in (ROOT / package).rglob("*.py"))
UNFINISHED = re.compile(r"\b(TODO|FIXME|NotImplementedError)\b")


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(read(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def run(program: str) -> str:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=25)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(program: str) -> set[str]:
    return set(run(f"{program}\nimport sys; print(*sys.modules)").split())


def test_every_module_says_what_it_is_for():
    assert [module(path) for path in FILES if not ast.get_docstring(ast.parse(read(path)))] == []


def test_no_module_is_longer_than_300_lines():
    assert [module(path) for path in FILES if len(read(path).splitlines()) > 300] == []


def test_no_function_is_longer_than_40_lines():
    every = ((module(path), *function) for path in FILES for function in functions(path))
    assert [(where, name) for where, name, lines in every if lines > 40] == []


def test_nothing_is_left_for_later():
    assert [module(path) for path in FILES if UNFINISHED.search(read(path))] == []


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pwd", "resource", "termios"}:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)
sys.meta_path.insert(0, Hidden())
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules.pop(name, None)
"""


def test_every_module_can_be_imported_where_posix_modules_are_missing():
    names = [module(path) for path in FILES if path.name != "__main__.py"]
    imports = "".join(f"import {name}\n" for name in names)
    run(HIDE + imports)


def test_a_hidden_module_is_really_hidden():
    with pytest.raises(AssertionError, match="fcntl is hidden"):
        run(HIDE + "import fcntl")


def test_the_program_imports_no_library_of_a_sink_that_is_not_configured():
    loaded = loaded_by(
        "import bridge.app.lifecycle, bridge.plugins; bridge.plugins.find_sink('stdout')"
    )
    assert "aiohttp" in loaded
    assert loaded & {"aiokafka", "paho", "jsonschema_rs"} == set()


def test_one_sink_does_not_bring_another():
    loaded = loaded_by("import bridge.plugins; bridge.plugins.find_sink('stdout')")
    public = {name for name in loaded if name.startswith("sinks.") and "._" not in name}
    assert public == {"sinks.stdout"}


FIRST_POLL = """
import os, sys
from bridge.cli import main
from bridge.metadata.client import Metadata
async def fetch(_):
    print(*sys.modules, flush=True)
    os._exit(0)
Metadata.fetch = fetch
sys.exit(main(["run", "-c", {config!r}]))
"""


def test_the_first_poll_waits_for_nothing_that_only_its_answer_needs(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(f"source: {{endpoint: 'http://127.0.0.1:9'}}\nstate_dir: {tmp_path}\n")
    loaded = set(run(FIRST_POLL.format(config=str(config))).split())
    assert {"bridge.source.poller", "bridge.journal.journal"} <= loaded
    desk = {
        "bridge.approvals.intake",
        "bridge.approvals.decisions",
        "bridge.approvals.listeners",
        "bridge.drills.runner",
    }
    words = {
        "bridge.core.messages",
        "bridge.policy.judge",
        "cloudevents",
        "sinks.formats.cloudevents",
    }
    assert loaded & {*desk, *words, "aiohttp.web", "bridge.web.server"} == set()
