"""What the process of the Windows service reports, to whom, and where it logs."""

import logging
from typing import Any

import pytest

from bridge.platform import windows_host
from bridge.platform.windows_control import Controls


@pytest.fixture
def controls(monkeypatch):
    made = Controls()
    monkeypatch.setattr(windows_host, "CONTROLS", made)
    return made


def states(reports):
    return [report[0] for report in reports]


def test_windows_hears_how_far_the_bridge_has_come(controls):
    reports: list[tuple[int, ...]] = []

    def main() -> int:
        assert states(reports) == [2], "it is starting"
        controls.report("READY=1")
        controls.report("STOPPING=1")
        return 0

    assert windows_host.serve(main, lambda *words: reports.append(words)) == 0
    assert states(reports) == [2, 4, 1]


def test_an_exit_code_is_reported_as_the_services_own(controls):
    reports: list[tuple[int, ...]] = []
    assert windows_host.serve(lambda: 78, lambda *words: reports.append(words)) == 78
    assert reports[-1] == (1, 0, 1066, 78)


def test_a_crash_is_logged_and_reported(controls, caplog):
    reports: list[tuple[int, ...]] = []

    def main() -> int:
        raise RuntimeError("broken")

    assert windows_host.serve(main, lambda *words: reports.append(words)) == 1
    assert reports[-1] == (1, 0, 1066, 1)
    assert [record.msg for record in caplog.records] == ["bridge.crashed"]


@pytest.mark.parametrize("control", [0x1, 0xF], ids=["stop", "before a shutdown"])
def test_a_stop_is_passed_on_and_answered(controls, control):
    heard, reports = [], []
    with controls.attached(lambda: heard.append("stop"), lambda: heard.append("reload")):
        windows_host.obey(control, lambda *words: reports.append(words))
        windows_host.obey(0x4, lambda *words: reports.append(words))  # how are you?
    assert heard == ["stop"]
    assert states(reports) == [3]


def test_changed_parameters_are_a_reload(controls):
    heard: list[str] = []
    with controls.attached(lambda: heard.append("stop"), lambda: heard.append("reload")):
        windows_host.obey(0x6, lambda *_: None)
    assert heard == ["reload"]


def test_warnings_and_errors_go_to_the_event_log(monkeypatch):
    told: list[tuple[str, int, list[str]]] = []

    class Pywin32:
        error = OSError

        @staticmethod
        def ReportEvent(source: str, _: int, **said: Any) -> None:  # noqa: N802  its name there
            told.append((source, said["eventType"], said["strings"]))
            raise OSError("the event log is full")

    monkeypatch.setattr(windows_host, "pywin32", lambda _: Pywin32)
    log = logging.getLogger("seb-test-event-log")
    log.propagate = False
    log.addHandler(windows_host.EventLog())
    log.setLevel(logging.INFO)
    log.info("quiet")
    log.warning("careful")
    log.error("broken")
    name = "scheduled-events-bridge"
    assert told == [(name, 2, ["careful"]), (name, 1, ["broken"])]


def test_a_log_that_somebody_reads_is_not_rotated_but_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(windows_host, "private_directory", lambda path: path.mkdir())
    monkeypatch.setattr(windows_host, "_LARGEST_LOG", 100)
    handler = windows_host.LogFile(tmp_path / "logs" / "bridge.log")
    monkeypatch.setattr(handler, "rotator", lambda *_: (_ for _ in ()).throw(PermissionError()))
    for number in range(20):
        handler.emit(logging.makeLogRecord({"msg": f"line {number}"}))
    handler.close()
    lines = (tmp_path / "logs" / "bridge.log").read_text().splitlines()
    assert lines == [f"line {number}" for number in range(20)]
