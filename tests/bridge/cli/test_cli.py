import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from support.log_tools import log_as_before

from bridge import cli
from bridge.cli import COMMANDS, main

SEB = str(Path(sys.executable).with_name("seb"))


@pytest.fixture(autouse=True)
def _log():
    with log_as_before():
        yield


def seb(*words: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [SEB, *words], capture_output=True, text=True, timeout=25, check=False, **more
    )


def refused(capsys, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(words)
    out, err = capsys.readouterr()
    assert out == ""
    assert isinstance(left.value.code, int)
    return left.value.code, err


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.strip() == version("scheduled-events-bridge")


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n    {name}" not in out] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_a_module_with_its_parts(capsys, name):
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: seb {name}")


def test_no_command_is_a_usage_error(capsys):
    code, said = refused(capsys)
    assert code == 2
    assert "COMMAND" in said


def test_an_unknown_command_is_a_usage_error(capsys):
    code, said = refused(capsys, "rnu")
    assert code == 2
    assert "'rnu'" in said
    assert "run" in said


@pytest.mark.parametrize(
    "words",
    [("run", "--onc"), ("run", "extra"), ("run", "-c"), ("--vers",), ("--onc", "run")],
    ids=" ".join,
)
def test_an_unknown_option_is_a_usage_error(capsys, words):
    assert refused(capsys, *words)[0] == 2


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_typo_in_a_key_names_file_key_and_the_nearest_right_one(tmp_path, capsys, command):
    file = tmp_path / "config.yaml"
    file.write_text("source:\n  pol_interval: 1s\n")
    assert main([command, "-c", str(file)]) == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert all(word in err for word in (str(file), "source.pol_interval", "poll_interval"))
    assert err.startswith("seb: " if command == "check" else "{"), "run writes a log"


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_file_that_is_not_there_is_bad_configuration(tmp_path, capsys, command):
    assert main([command, "-c", str(tmp_path / "nothing.yaml")]) == 78
    assert "nothing.yaml" in capsys.readouterr().err


def test_a_command_that_is_interrupted_ends_as_shells_expect(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("bridge.cli.commands.schema.run", interrupted)
    assert main(["schema"]) == 130


def test_a_reader_that_leaves_early_gets_no_traceback():
    with subprocess.Popen(
        [SEB, "schema", "config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(25) in (0, 1)
    assert said == b""


def test_the_installed_command_is_the_same(tmp_path):
    done = seb("--version")
    assert (done.returncode, done.stdout.strip()) == (0, version("scheduled-events-bridge"))
    file = tmp_path / "config.yaml"
    file.write_text("sinks: {a: {type: fil}}\n")
    done = seb("check", "-c", str(file))
    assert (done.returncode, done.stdout) == (78, "")
    assert "Traceback" not in done.stderr


def test_imports_are_not_interrupted_by_searches_for_garbage():
    program = (
        "import gc; searches = []; gc.callbacks.append(lambda *_: searches.append(1))\n"
        "from bridge.cli import _chosen\n"
        "before = len(searches); _chosen(['run'])\n"
        "print(len(searches) - before, gc.isenabled())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=25, check=True
    )
    assert done.stdout.split() == ["0", "True"]


def test_only_the_chosen_command_is_read_and_help_lists_all(capsys):
    for arguments in (["--help"], ["--help", "run"]):
        with pytest.raises(SystemExit):
            main(arguments)
        said = capsys.readouterr().out
        assert all(name in said for name in COMMANDS)
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "usage: seb run" in capsys.readouterr().out


def test_only_the_chosen_command_is_loaded():
    program = "import sys; from bridge.cli import main; main(['schema', 'audit'])"
    program += "; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=25, check=True
    )
    loaded = set(done.stderr.split())
    others = {module for name, (module, _) in COMMANDS.items() if name != "schema"}
    assert loaded & others == set()
    assert cli.COMMANDS["schema"][0] in loaded
