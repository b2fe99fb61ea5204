"""The process of the Windows service: the bridge inside it, what it reports, and where it logs."""

import logging
import logging.handlers
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bridge.platform.windows import private_directory
from bridge.platform.windows_control import CONTROLS
from bridge.platform.windows_service import NAME, TITLE, pywin32, translated

_PENDING = 30_000
"""How long Windows waits for the next sign of life, in milliseconds."""
_PULSE = 5.0
_LARGEST_LOG = 10 * 1024 * 1024
_SPECIFIC = 1066
_STOPPED, _START_PENDING, _STOP_PENDING, _RUNNING = 1, 2, 3, 4
_STOP, _PARAMCHANGE, _PRESHUTDOWN = 0x1, 0x6, 0xF
_ACCEPTED = 0x1 | 0x8 | 0x100  # the three above, as Windows numbers them here

StatusReport = Callable[..., object]
"""`report(state, wait_hint, exit_code, service_exit_code)` tells Windows how far we have come."""


def host_service(main: Callable[[], int]) -> None:
    """Run *main* as the service that Windows has started; return when it has stopped."""
    manager = pywin32("servicemanager")
    with translated("start"):
        manager.Initialize(NAME, None)
        manager.PrepareToHostSingle(_service(main))
        manager.StartServiceCtrlDispatcher()


def _service(main: Callable[[], int]) -> type:
    class Service(pywin32("win32serviceutil").ServiceFramework):  # type: ignore[misc]  # imported late
        """What pywin32 creates an object of; the names are its own."""

        _svc_name_ = NAME
        _svc_display_name_ = TITLE

        def GetAcceptedControls(self) -> int:  # noqa: N802  pywin32's name
            return _ACCEPTED

        def ServiceCtrlHandlerEx(self, control: int, *_: object) -> None:  # noqa: N802  pywin32's name
            obey(control, self.ReportServiceStatus)

        def SvcRun(self) -> None:  # noqa: N802  pywin32's name
            code = serve(main, self.ReportServiceStatus)
            if code:  # else pywin32 would report once more, that all is well
                os._exit(code)

    return Service


def obey(control: int, report: StatusReport) -> None:
    """Do what Windows asks: stop, stop before a shutdown, or reload."""
    if control in {_STOP, _PRESHUTDOWN}:
        report(_STOP_PENDING, _PENDING)
        CONTROLS.stop()
    elif control == _PARAMCHANGE:
        CONTROLS.reload()


def serve(main: Callable[[], int], report: StatusReport) -> int:
    """Run *main* from start to stop; return its exit code. Windows restarts what stops with one."""
    report(_START_PENDING, _PENDING)
    ended = threading.Event()

    def notified(state: str) -> None:
        if state == "READY=1":
            report(_RUNNING)
        elif state == "STOPPING=1":
            pulse = threading.Thread(target=_pulse, args=(report, ended), name="stopping")
            pulse.start()

    CONTROLS.report = notified
    code = _exit_code(main)
    ended.set()
    if code:
        report(_STOPPED, 0, _SPECIFIC, code)
    else:
        report(_STOPPED)
    return code


def _pulse(report: StatusReport, ended: threading.Event) -> None:
    """Tell Windows that stopping goes on, for as long as the sinks drain."""
    while not ended.wait(_PULSE):
        report(_STOP_PENDING, _PENDING)


def _exit_code(main: Callable[[], int]) -> int:
    try:
        return main()
    except BaseException:
        logging.getLogger(__name__).exception("bridge.crashed")
        return 1


class LogFile(logging.handlers.RotatingFileHandler):
    """Everything, in a file that is rotated by size, unless somebody reads it just then."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):
            private_directory(path.parent)
        super().__init__(path, maxBytes=_LARGEST_LOG, backupCount=5, encoding="utf-8", delay=True)

    def rotate(self, source: str, dest: str) -> None:
        """Windows does not rename a file that is open elsewhere: go on in the same one."""
        with suppress(OSError):
            super().rotate(source, dest)


class EventLog(logging.Handler):
    """Warnings and errors, in the event log of Windows."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._report = pywin32("win32evtlogutil").ReportEvent

    def emit(self, record: logging.LogRecord) -> None:
        """Ignore a log that cannot be written, as all our handlers do."""
        kind = 1 if record.levelno >= logging.ERROR else 2
        try:
            self._report(NAME, 1, eventType=kind, strings=[self.format(record)])
        except pywin32("pywintypes").error:
            return
