"""The rules of the house that no other tool checks: rooms, sizes, tests, and what is imported when."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for package in ("bridge", "sinks") for path in (ROOT / package).rglob("*.py"))
CACHES = {"__pycache__"}
ROOMS_OF_TESTS = (ROOT / "tests" / "bridge", ROOT / "tests" / "sinks")
TESTED_ELSEWHERE: dict[str, str] = {}
"""Modules without a test file of their own, and where they are tested instead."""
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
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(program: str) -> set[str]:
    return set(run(f"{program}\nimport sys; print(*sys.modules)").split())


LISTS = {"bridge/cli/commands", "sinks", "sinks/formats"}
"""Rooms that are lists of equals, one file each, without limit."""
FACADES = {"plugins", "config", "journal", "cli", "platform", "simulator", "web"}
"""Rooms of `bridge` whose `__init__` says what the others may use; all else holds a docstring."""
MOST_MODULES = 10
LEAST_LINES = 25
SMALL = {
    "bridge/cli/__main__.py": "only calls the command line",
    "bridge/cli/commands/completion.py": "one command",
    "bridge/cli/commands/schema.py": "one command",
    "bridge/common/clock.py": "what every clock is",
    "bridge/common/errors.py": "the words for what went wrong",
    "bridge/demo/extras.py": "imported before anything that the demo needs",
    "bridge/platform/errors.py": "shared by both operating systems",
    "sinks/_limit.py": "shared by all sinks that send over a network",
    "sinks/command/check.py": "the same file name in every technology",
    "sinks/formats/cloudevents.py": "one format",
    "sinks/splunk/check.py": "the same file name in every technology",
    "sinks/syslog/check.py": "the same file name in every technology",
    "sinks/webhook/check.py": "the same file name in every technology",
}
SHARED = {"settings", "connection", "binding", "delivery", "source", "errors", "check"}


def modules(root: Path) -> dict[str, list[str]]:
    """The modules of each room of *root*, without `__init__`."""
    rooms: dict[str, list[str]] = {}
    for package in ("bridge", "sinks"):
        for path in sorted((root / package).rglob("*.py")):
            room = rooms.setdefault(path.parent.relative_to(root).as_posix(), [])
            if path.name != "__init__.py":
                room.append(path.stem)
    return rooms


def out_of_order(root: Path) -> list[str]:
    """What lies loose in `bridge`, and what is one too many in its room."""
    rooms = modules(root)
    loose = [f"bridge/{name}.py lies loose" for name in rooms["bridge"]]
    crowded = [
        f"{room} has {len(names)} modules"
        for room, names in rooms.items()
        if room not in LISTS and len(names) > MOST_MODULES
    ]
    return loose + crowded


def test_nothing_lies_loose_and_no_room_is_crowded():
    assert out_of_order(ROOT) == []


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (["bridge/loose.py"], "bridge/loose.py lies loose"),
        ([f"bridge/room/m{number}.py" for number in range(11)], "bridge/room has 11 modules"),
        ([f"sinks/radio/m{number}.py" for number in range(11)], "sinks/radio has 11 modules"),
    ],
)
def test_a_loose_module_and_an_eleventh_one_are_found(tmp_path, added, said):
    for name in ("bridge/__init__.py", "sinks/__init__.py", *added):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert out_of_order(tmp_path) == [said]


def test_every_room_is_on_a_floor():
    config = tomllib.loads(read(ROOT / "pyproject.toml"))
    floors = config["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = {name.strip() for floor in floors for name in floor.split("|")}
    assert len(floors) == 9
    assert rooms == {path.name for path in (ROOT / "bridge").iterdir() if path.is_dir()} - CACHES


def test_a_room_says_what_it_is_for_and_only_facades_say_more():
    found = []
    for path in (ROOT / "bridge").rglob("__init__.py"):
        room = path.parent.relative_to(ROOT / "bridge").as_posix()
        if room not in FACADES and len(ast.parse(read(path)).body) != 1:
            found.append(room)
    assert found == []


def test_technologies_name_alike_what_they_have_alike():
    folders = [path for path in (ROOT / "sinks").iterdir() if (path / "settings.py").exists()]
    assert len(folders) == 6
    for folder in folders:
        here = {path.stem for path in folder.glob("*.py")}
        assert {"settings", "delivery", "errors", "check"} <= here, folder.name
        assert len(here & SHARED) >= 4, folder.name


def test_a_small_module_has_a_reason():
    small = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if path.name != "__init__.py" and len(read(path).splitlines()) < LEAST_LINES
    }
    assert small == set(SMALL)


def test_tests_stand_where_their_module_stands():
    rooms, strays = modules(ROOT), []
    for path in sorted(test for room in ROOMS_OF_TESTS for test in room.rglob("test_*.py")):
        room = path.parent.relative_to(ROOT / "tests").as_posix()
        topic = path.stem.removeprefix("test_")
        names = [*(name.strip("_") for name in rooms.get(room, [])), path.parent.name, "contract"]
        if not any(topic == name or topic.startswith(f"{name}_") for name in names):
            strays.append(path.relative_to(ROOT).as_posix())
    assert strays == []


def test_every_module_has_its_test_file():
    lacking = []
    for room, names in modules(ROOT).items():
        there = [path.stem for path in (ROOT / "tests" / room).glob("test_*.py")]
        for name in names:
            own = f"test_{name.strip('_')}"
            if not any(test == own or test.startswith(f"{own}_") for test in there):
                lacking.append(f"{room}/{name}.py")
    assert sorted(set(lacking) - set(TESTED_ELSEWHERE)) == []
    assert set(TESTED_ELSEWHERE) <= set(lacking)


def types(path: Path) -> Iterator[str]:
    """The public classes and type aliases of a module."""
    for node in ast.parse(read(path)).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if re.fullmatch(r"[A-Z][a-z]\w+", name):
                yield name


@pytest.mark.parametrize(
    "package",
    ["bridge", *sorted(path.name for path in (ROOT / "sinks").iterdir() if path.is_dir())],
)
def test_a_name_of_a_type_has_one_meaning(package):
    root = ROOT / package if package == "bridge" else ROOT / "sinks" / package
    places: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for name in types(path):
            if not name.startswith("_"):
                places.setdefault(name, []).append(module(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
    assert "Event" not in places, "a scheduled event, a CloudEvent or an asyncio.Event?"


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
        "import bridge.app.lifecycle, bridge.plugins.sinks; bridge.plugins.sinks.find_sink('stdout')"
    )
    assert "aiohttp" in loaded
    assert loaded & {"aiokafka", "paho", "jsonschema_rs"} == set()


def test_one_sink_does_not_bring_another():
    loaded = loaded_by("import bridge.plugins.sinks; bridge.plugins.sinks.find_sink('stdout')")
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
    approvals = {
        "bridge.approvals.intake",
        "bridge.approvals.decisions",
        "bridge.approvals.listeners",
        "bridge.drills.runner",
    }
    writing = {
        "bridge.core.messages",
        "bridge.policy.judge",
        "cloudevents",
        "sinks.formats.cloudevents",
        "bridge.core.observer",
        "bridge.core.severity",
    }
    delivery = {name for name in loaded if name.startswith("bridge.delivery")}
    unused = {"bridge.common.signatures", "bridge.common.spelling", "difflib"}
    assert delivery == set()
    assert loaded & {*approvals, *writing, *unused, "aiohttp.web", "bridge.web.server"} == set()


WITHOUT_REASON = re.compile(
    r"# (noqa: [A-Z0-9]+(, [A-Z0-9]+)*|type: ignore\[[a-z-]+\])\s*$", re.MULTILINE
)


def test_every_exception_from_a_rule_has_its_reason():
    assert [module(path) for path in FILES if WITHOUT_REASON.search(read(path))] == []
