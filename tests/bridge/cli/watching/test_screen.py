import os

import pytest

from bridge.cli.watching.screen import screen


@pytest.fixture(autouse=True)
def _size(monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((0, 0)))


def test_the_terminal_is_given_back_whatever_happens(capsys):
    def fail():
        with screen() as drawn:
            drawn.draw(["one", "two"], (80, 24))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    out = capsys.readouterr().out
    assert out.startswith("\x1b[?1049h\x1b[?25l")
    assert out.endswith("\x1b[?25h\x1b[?1049l")
    assert "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J" in out


def test_only_a_change_or_another_size_is_drawn(capsys):
    with screen() as drawn:
        capsys.readouterr()
        for lines, size in ((["a"], (80, 24)), (["a"], (80, 24)), (["a"], (70, 24))):
            drawn.draw(lines, size)
        assert capsys.readouterr().out.count("\x1b[Ha") == 2


def test_a_terminal_of_unknown_size_is_a_usual_one(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1, raising=False)
    with screen() as drawn:
        assert drawn.size == (80, 24)
    assert capsys.readouterr().out
