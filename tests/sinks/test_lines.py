"""A file of whole lines: what is half written is cut off, what is full is rotated."""

from dataclasses import replace

import pytest

from sinks._lines import LineFile


@pytest.fixture
def lines(tmp_path):
    return LineFile(
        tmp_path / "events.jsonl", max_size=100, max_age=3600.0, keep=2, mode=0o640,
        head=b"{",
    )  # fmt: skip


def test_a_line_that_a_crash_left_unfinished_is_cut_off(lines):
    lines.path.write_bytes(b'{"a": 1}\n{"b": ')
    lines.prepare()
    assert lines.path.read_bytes() == b'{"a": 1}\n'


def test_a_file_that_is_not_ours_is_left_alone(lines):
    foreign = b"not JSON, and without an end"
    lines.path.write_bytes(foreign)
    with pytest.raises(OSError):
        lines.append(b'{"a": 1}\n')
    assert lines.path.read_bytes() == foreign


def test_what_would_not_fit_begins_a_new_file_and_only_so_many_are_kept(lines):
    for number in range(5):
        lines.append(b'{"n": %d, "text": "%s"}\n' % (number, b"x" * 60))
    files = sorted(path.name for path in lines.path.parent.iterdir())
    assert files[0] == "events.jsonl"
    assert len(files) == 3
    assert b'"n": 4' in lines.path.read_bytes()


def test_inspecting_changes_nothing(lines):
    assert lines.inspect() is False
    lines.path.write_bytes(b'{"a": 1}\n{"b": ')
    assert lines.inspect() is True
    assert lines.path.read_bytes() == b'{"a": 1}\n{"b": '


def test_a_folder_in_its_place_is_an_error(lines):
    lines.path.mkdir()
    with pytest.raises(OSError):
        replace(lines, max_size=1).append(b"{}\n")
