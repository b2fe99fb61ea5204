"""What users install: the wheel, both commands without any extra, and the container image."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCHEMAS = sorted(path for path in (ROOT / "schemas").iterdir() if path.is_file())


def run(*argv: object, cwd: Path) -> str:
    command = [str(part) for part in argv]
    done = subprocess.run(
        command, check=False, cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    run(*build, "--outdir", out, ROOT, cwd=out)
    [built] = out.glob("*.whl")
    return built


@pytest.fixture
def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def entry_points(wheel: Path) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser()
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        parsed.read_string(archive.read(name).decode())
    return parsed


def test_the_wheel_brings_two_packages_and_nothing_else(names):
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"bridge", "sinks"}
    assert len(top) == 3


def test_the_wheel_brings_every_module_and_the_marker_of_types(names):
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in ("bridge", "sinks")
        for path in (ROOT / package).rglob("*.py")
    }
    assert modules | {"bridge/py.typed", "sinks/py.typed"} <= names


def test_the_wheel_brings_every_schema_as_data(names):
    assert SCHEMAS
    assert {f"bridge/_schemas/{path.name}" for path in SCHEMAS} <= names


def test_the_wheel_brings_every_file_of_the_console(names):
    folder = ROOT / "bridge" / "web" / "console"
    files = [
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    shipped = {path.relative_to(ROOT).as_posix() for path in files}
    assert "bridge/web/console/index.html" in shipped
    assert shipped <= names


def test_the_wheel_brings_every_scenario_of_the_simulator(names):
    folder = "bridge/simulator/scenarios"
    shipped = {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.yaml")}
    assert shipped
    assert shipped <= names


def test_the_wheel_names_both_commands_and_our_sinks(wheel):
    points = entry_points(wheel)
    assert dict(points["console_scripts"]) == {
        "scheduled-events-bridge": "bridge.cli:main",
        "seb": "bridge.cli:main",
    }
    assert {"file", "stdout"} <= set(points["scheduled_events_bridge.sinks"])


@pytest.mark.timeout(180)
def test_both_commands_work_from_the_wheel_without_any_extra(wheel, tmp_path):
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    scripts = venv / ("Scripts" if sys.platform == "win32" else "bin")
    python = shutil.which("python", path=str(scripts))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)

    for command in ("seb", "scheduled-events-bridge"):
        assert "demo" in run(scripts / command, "--help", cwd=tmp_path)
    listed = run(scripts / "seb", "schema", cwd=tmp_path)
    shipped = [path for path in SCHEMAS if path.name.endswith(".schema.json")]
    names = [path.name.removesuffix(".schema.json") for path in shipped]
    assert [name for name in names if name not in listed] == []
    show = "import sys, bridge.cli as c; [c.main(['schema', name]) for name in sys.argv[1:]]"
    shown = run(python, "-c", show, *names, cwd=tmp_path)
    assert shown == "".join(f"{path.read_text().strip()}\n" for path in shipped)
    libraries = ("aiokafka", "paho", "pytest")
    look = f"import importlib.util as u; print(*map(u.find_spec, {libraries!r}))"
    assert run(python, "-c", look, cwd=tmp_path).split() == ["None"] * 3


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", text)).splitlines()
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line)
    ]


def last_stage() -> dict[str, str]:
    every = instructions()
    start = max(place for place, (word, _) in enumerate(every) if word == "FROM")
    return dict(every[start:])


def test_the_image_is_built_in_stages_and_holds_only_the_result():
    words = [word for word, _ in instructions()]
    assert words.count("FROM") >= 2
    assert last_stage()["COPY"].startswith("--from=")
    assert "ADD" not in words


def test_the_image_runs_as_a_numbered_user_that_is_not_root():
    user, _, group = last_stage()["USER"].partition(":")
    assert int(user) > 0
    assert int(group) > 0


def test_the_image_has_a_health_check_that_needs_no_other_program():
    check = last_stage()["HEALTHCHECK"]
    assert '["seb", "health"]' in check, "over the control socket, whatever HTTP asks for"


def test_the_image_runs_the_bridge_keeps_its_journal_and_stops_in_order():
    stage = last_stage()
    assert stage["ENTRYPOINT"] == '["seb"]'
    assert stage["CMD"] == '["run"]'
    assert stage["STOPSIGNAL"] == "SIGTERM"
    assert stage["VOLUME"] == "/var/lib/scheduled-events-bridge"
    assert f"-o {stage['USER'].partition(':')[0]} " in stage["RUN"]


def test_the_image_has_every_extra_that_a_running_bridge_can_use():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = set(project["optional-dependencies"]) - {"demo", "dev", "windows"}
    [extras] = re.findall(r"\.whl\)\[([a-z0-9,]+)\]", (ROOT / "Dockerfile").read_text())
    assert set(extras.split(",")) == wanted


def test_nothing_reaches_the_image_that_the_ignore_file_does_not_name():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        name
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from=")
        for name in rest.split()[:-1]
    }
    assert "*" in ignored
    assert copied == allowed
