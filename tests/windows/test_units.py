"""The tests of the modules themselves, run by CPython for Windows under Wine."""

import os
import re
from pathlib import Path

import pytest
from support.wine import Wine, windows_path

ROOT = Path(__file__).parents[2]
CHOSEN = (
    "tests/bridge/platform",
    "tests/bridge/common",
    "tests/bridge/metadata",
    "tests/bridge/journal",
    "tests/bridge/core/test_diff.py",
    "tests/bridge/core/test_state_codec.py",
    "tests/bridge/delivery/test_rules.py",
    "tests/sinks/test_file.py",
    "tests/sinks/test_lines.py",
    "tests/sinks/test_lines_windows.py",
)
"""What touches files, processes, clocks, sockets or the registry, and what decides."""
NOT_HERE = {
    "tests/bridge/platform/test_posix.py": "POSIX",
    "tests/bridge/platform/test_control_socket.py": "POSIX",
    "tests/bridge/journal/test_journal.py::test_only_the_owner_can_use_the_state_directory": "modes of POSIX",
    "tests/bridge/journal/test_journal.py::test_only_the_owner_can_read_the_journal_and_its_companions_with_any_umask": "modes of POSIX",
    "tests/bridge/journal/test_journal.py::test_an_existing_journal_keeps_its_mode": "modes of POSIX",
    "tests/bridge/journal/test_schema.py::test_a_kill_while_keys_are_hashed_loses_none": "signals of POSIX",
    "tests/bridge/journal/test_schema.py::test_a_damaged_name_that_is_not_text_is_corrupt_too": "counts the pages that another SQLite wrote",
    "tests/sinks/test_file.py::test_a_new_file_has_the_mode_that_was_asked_for_whatever_the_umask": "modes of POSIX",
    "tests/sinks/test_file.py::test_the_mode_of_a_file_that_is_there_already_is_left_alone": "modes of POSIX",
    "tests/sinks/test_file.py::test_a_file_that_another_program_creates_again_is_the_one_written": "modes of POSIX",
    "tests/sinks/test_file.py::test_file_and_directory_are_synced": "looks into /proc; Windows does not sync directories",
    "tests/sinks/test_file.py::test_a_directory_that_cannot_be_synced_counts_unless_there_is_no_such_thing": "Windows does not sync directories",
    "tests/sinks/test_file.py::test_a_directory_in_the_way_is_named": "the sentence of POSIX",
    "tests/sinks/test_file.py::test_a_file_where_a_directory_should_be_is_named": "the sentence of POSIX",
    "tests/sinks/test_file.py::test_a_named_pipe_is_refused_immediately": "a named pipe of POSIX",
    "tests/sinks/test_file.py::test_a_file_that_may_not_be_written_is_named": "users of POSIX",
    "tests/sinks/test_file.py::test_behind_a_symbolic_link_the_file_itself_is_rotated": "Wine does not show a symbolic link as one",
    "tests/bridge/metadata/test_late_body.py::test_the_events_are_chosen_when_the_connection_is_there": "the event loop of Windows notices later that the service hung up; the request is then repeated",
}


@pytest.mark.timeout(600)
async def test_the_modules_work_on_windows(wine: Wine, monkeypatch: pytest.MonkeyPatch):
    libraries = windows_path(Path(os.environ["SEB_WINDOWS_TESTS"]))
    monkeypatch.setenv("PYTHONPATH", libraries)
    monkeypatch.chdir(ROOT)
    left = [word for name in NOT_HERE for word in _left_out(name)]
    code, said = await wine.run(
        "-P", "-m", "pytest", *CHOSEN, *left, "-q", "-p", "no:cacheprovider", "--tb=short",
        "-o", "addopts=--import-mode=importlib", "--timeout", "240",
        patience=540,
    )  # fmt: skip
    print(said[-20_000:])
    assert code == 0, said[-20_000:]
    passed = re.search(r"(\d+) passed", said)
    assert passed
    assert int(passed[1]) > 500


def _left_out(name: str) -> tuple[str, str]:
    return ("--deselect", name) if "::" in name else ("--ignore", name)
