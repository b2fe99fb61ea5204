import argparse
import json
import signal
import socket
import subprocess
import sys

import pytest

from bridge.simulator.command import add_arguments, run

PROGRAM = (
    "import argparse, sys; from bridge.simulator.command import add_arguments, run;"
    "parser = argparse.ArgumentParser(); add_arguments(parser);"
    "sys.exit(run(parser.parse_args()))"
)


def simulate(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(words))


def test_the_command_prints_its_address_and_ends_when_all_is_done(tmp_path, capsys):
    truth = tmp_path / "truth.jsonl"
    words = ["--scenario", "hardware-failure", "--speed", "6000", "--port", "0", "--exit-when-done"]
    assert simulate(*words, "--vm-name", "here", "--truth", str(truth), "--seed", "3") == 0
    out, err = capsys.readouterr()
    assert "here asks http://127.0.0.1:" in out
    assert "source: {endpoint: 'http://127.0.0.1:" in out
    records = [json.loads(line) for line in truth.read_text().splitlines()]
    assert [record["what"] for record in records] == ["started", "completed"]
    assert records[0]["resources"] == ["here"]
    assert records[0]["eventId"] in err


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(stop):
    words = [sys.executable, "-c", PROGRAM, "--port", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Scenario reboot: ")
        process.send_signal(stop)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_one_sentence(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert simulate("--port", str(port)) == 1
    err = capsys.readouterr().err
    assert err == f"port {port} on 127.0.0.1 cannot be used: Address already in use; try --port 0\n"


def test_a_truth_file_that_cannot_be_written_is_one_sentence(tmp_path, capsys):
    assert simulate("--port", "0", "--truth", str(tmp_path)) == 1
    assert capsys.readouterr().err.startswith(f"the truth file {tmp_path} cannot be written: ")


def test_a_bad_scenario_is_one_sentence_and_78(tmp_path, capsys):
    file = tmp_path / "bad.yaml"
    file.write_text("script: [{create: {type: Reboot, notise: 1m}}]")
    assert simulate("--scenario", str(file)) == 78
    err = capsys.readouterr().err
    assert err.startswith(f"scenario {file}: script.0.create: unknown key 'notise'; did you mean")
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["--speed", "0"], ["--speed", "x"], ["--port", "70000"]])
def test_a_wrong_number_is_a_usage_error(words, capsys):
    with pytest.raises(SystemExit) as caught:
        simulate(*words)
    assert caught.value.code == 2
    assert f"{words[1]!r} is not a" in capsys.readouterr().err
