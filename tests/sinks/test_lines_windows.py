"""A file of lines on Windows: readers that have it open, and long paths."""

import os
import sys
from pathlib import Path

import pytest

from sinks._lines import LineFile

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="`make test-windows` runs it")
LINE = b'{"specversion":"1.0"}\n'


def line_file(path: Path) -> LineFile:
    return LineFile(path=path, max_size=2 * len(LINE), max_age=0, keep=1, mode=0o640, head=b"{")


def test_while_somebody_reads_it_the_file_grows_and_is_rotated_later(tmp_path):
    file = line_file(tmp_path / "events.jsonl")
    file.append(LINE * 2)
    with file.path.open("rb") as reader:
        file.append(LINE)
        assert reader.read() == LINE * 3
        assert list(tmp_path.iterdir()) == [file.path]
    file.append(LINE)
    assert file.path.read_bytes() == LINE
    [rotated] = set(tmp_path.iterdir()) - {file.path}
    assert rotated.read_bytes() == LINE * 3


def test_a_rotated_file_that_somebody_reads_is_deleted_later(tmp_path):
    file = line_file(tmp_path / "events.jsonl")
    file.append(LINE * 2)
    file.append(LINE * 2)
    [old] = set(tmp_path.iterdir()) - {file.path}
    with old.open("rb"):
        file.append(LINE * 2)
        assert old.exists()
    file.append(LINE * 2)
    assert not old.exists()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_path_may_be_longer_than_windows_once_allowed(tmp_path):
    folder = tmp_path / ("a" * 120) / ("b" * 120)
    file = line_file(folder / "events.jsonl")
    assert len(str(file.path)) > 260
    file.append(LINE)
    file.append(LINE)
    with open(os.fspath(file.path), "rb") as written:  # noqa: PTH123  as any other program does
        assert written.read() == LINE * 2
