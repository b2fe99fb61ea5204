import os
import sys
from pathlib import Path

import pytest

from bridge.web.health.process import usage


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_open_file_and_used_memory_are_seen(tmp_path):
    before = usage()
    assert before.files is not None
    assert before.memory is not None
    filled = bytearray(os.urandom(1)) * 50_000_000
    with (tmp_path / "file").open("w"):
        after = usage()
    assert after.files == before.files + 1
    assert (after.memory or 0) > before.memory + len(filled) // 2
    assert after.cpu >= before.cpu


def test_a_system_without_proc_reports_the_cpu_time_alone(monkeypatch, tmp_path):
    monkeypatch.setattr("bridge.web.health.process.PROCESS", Path(tmp_path))
    found = usage()
    assert found.cpu > 0
    assert (found.memory, found.files) == (None, None)
