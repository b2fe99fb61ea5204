import pytest

from bridge.cli import COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_gets_every_command_and_its_options(capsys, shell):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in out] == []
    assert "dead-letters" in out
    for option in ("sign-with", "follow", "connect"):
        assert option in out


def test_another_shell_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as left:
        main(["completion", "tcsh"])
    assert left.value.code == 2
    assert "bash" in capsys.readouterr().err
