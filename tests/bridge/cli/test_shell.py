from support.command_line import parse

from bridge.cli.commands import events, sinks


def test_without_a_bridge_one_sentence_on_stderr(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text(f"state_dir: {tmp_path}\nhttp: {{listen: 127.0.0.1:9}}\n")
    assert events.run(parse(events, "-c", str(file))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("seb: No bridge is running here (no control socket in ")
    assert err.count("\n") == 1


def test_a_bad_configuration_is_exit_78(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text("sauce: {}\n")
    assert sinks.run(parse(sinks, "-c", str(file))) == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert "sauce" in err


def test_a_secret_of_the_service_need_not_be_set_in_the_operators_shell(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("NOT_MINE", raising=False)
    file = tmp_path / "config.yaml"
    file.write_text(f'state_dir: {tmp_path}\nhttp: {{listen: null, tokens: ["${{NOT_MINE}}"]}}\n')
    assert sinks.run(parse(sinks, "-c", str(file))) == 1
    assert "No bridge is running here" in capsys.readouterr().err


def test_other_errors_in_the_file_are_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("NOT_MINE", raising=False)
    file = tmp_path / "config.yaml"
    file.write_text('sauce: 1\nhttp: {tokens: ["${NOT_MINE}"]}\n')
    assert sinks.run(parse(sinks, "-c", str(file))) == 78
    assert "${NOT_MINE} is not set" in capsys.readouterr().err
