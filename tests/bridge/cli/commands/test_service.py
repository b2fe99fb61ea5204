"""`seb service`, as far as other systems have it."""

import pytest

from bridge.cli import main


@pytest.mark.parametrize("action", ["start", "stop", "remove"])
def test_where_there_are_no_windows_services_it_says_so(action, capsys):
    assert main(["service", action]) == 1
    said = capsys.readouterr().err
    assert said == "seb: there are Windows services only on Windows; on Linux, use systemd\n"


def test_a_service_cannot_write_to_stdout(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text("sinks: {out: {type: stdout}}\n")
    assert main(["service", "install", "-c", str(file)]) == 1
    assert "the sink 'out' writes to stdout, and a service has none" in capsys.readouterr().err


def test_a_wrong_configuration_is_not_installed(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text("sinks: 7\n")
    assert main(["service", "install", "-c", str(file)]) == 78
    assert "config.yaml:1: sinks" in capsys.readouterr().err
