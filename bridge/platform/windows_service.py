"""Install, start, stop and remove the Windows service; needs pywin32."""

import os
import subprocess
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bridge.platform import windows_rights as rights
from bridge.platform.errors import ServiceError
from bridge.platform.windows import BOOT_KEY, program_data

NAME = "scheduled-events-bridge"
ACCOUNT = rf"NT SERVICE\{NAME}"
TITLE = "Scheduled Events Bridge"
_ABOUT = (
    "Sends Azure Scheduled Events to Kafka, MQTT, webhooks and SIEMs, and takes approvals back."
)
_RESTARTS = (1_000, 5_000, 60_000)
_FORGET = 3600
_SID_TYPE, _FLAG, _PRESHUTDOWN_LEVEL = 5, 4, 7
_SENTENCES = {
    5: "access is denied; run this in a terminal of an administrator",
    1056: "it is already running",
    1060: "it is not installed; install it with: seb service install",
    1062: "it is not running",
    1063: "only Windows starts this command, as the program of the service",
    1072: "it is being removed; close the Services window and try again",
    1073: "it is already installed",
}


def install_service(
    words: Sequence[str], *, account: str = ACCOUNT, automatic: bool = True
) -> list[str]:
    """Install a service that runs *words*; return sentences about what Windows did not accept."""
    service = pywin32("win32service")
    _prepare(account)
    kind = service.SERVICE_AUTO_START if automatic else service.SERVICE_DEMAND_START
    with translated("install"):
        manager = service.OpenSCManager(None, None, service.SC_MANAGER_CREATE_SERVICE)
        handle = service.CreateService(
            manager, NAME, TITLE, service.SERVICE_ALL_ACCESS, service.SERVICE_WIN32_OWN_PROCESS,
            kind, service.SERVICE_ERROR_NORMAL, subprocess.list2cmdline(words), None, 0, None,
            None if account == "LocalSystem" else account, None,
        )  # fmt: skip
    pywin32("win32evtlogutil").AddSourceToRegistry(NAME)
    return [sentence for sentence in _configured(handle) if sentence]


def _configured(handle: Any) -> list[str | None]:
    service = pywin32("win32service")
    actions = {
        "ResetPeriod": _FORGET,
        "RebootMsg": "",
        "Command": "",
        "Actions": [(service.SC_ACTION_RESTART, pause) for pause in _RESTARTS],
    }
    settings = [
        ("the description", service.SERVICE_CONFIG_DESCRIPTION, _ABOUT),
        ("the recovery actions", service.SERVICE_CONFIG_FAILURE_ACTIONS, actions),
        ("recovery after an exit with an error", _FLAG, True),
        ("the identity of the service", _SID_TYPE, 1),
        ("the time to stop before a shutdown", _PRESHUTDOWN_LEVEL, 60_000),
    ]
    return [_setting(handle, *setting) for setting in settings]


def _setting(handle: Any, name: str, level: int, value: object) -> str | None:
    try:
        pywin32("win32service").ChangeServiceConfig2(handle, level, value)
    except pywin32("pywintypes").error as error:
        return f"This system did not accept {name}: {error.strerror.strip()}"
    return None


def _prepare(account: str) -> None:
    """Create our directories and our registry key: for administrators and the service only.

    Every user may create a directory in ProgramData. One that another user has created may have a
    configuration in it that runs programs, so it is refused.
    """
    winreg: Any = import_module("winreg")
    root, sid = program_data(), rights.service_sid(NAME)
    trusted = {"BA", "SY", "LA", rights.ADMINISTRATORS, rights.SYSTEM, rights.user_sid()}
    own = account.casefold() == ACCOUNT.casefold()
    try:
        if root.exists() and (owner := rights.owner_of(root)) not in trusted:
            raise ServiceError(
                f"{root} belongs to {owner}, who is not an administrator and may have put files "
                "into it; delete it, or make Administrators its owner"
            )
        for path, may in (
            (root, rights.READ),
            (root / "state", rights.CHANGE),
            (root / "logs", rights.CHANGE),
        ):
            text = rights.sddl(*([rights.entry(sid, may)] if own else []))
            rights.make_directory(path, text)
            rights.set_rights(str(path), text)
        winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, BOOT_KEY)
        text = rights.sddl(*([rights.entry(sid, "KA", "CI")] if own else []), kind="CI")
        rights.set_rights(rf"MACHINE\{BOOT_KEY}", text, rights.KEY)
    except OSError as error:
        raise ServiceError(f"cannot prepare {root}: {error.strerror or error}") from error


def start_service(patience: float) -> None:
    """Start the service, and return when it runs; raises `ServiceError` if it ends instead."""
    service = pywin32("win32service")
    with translated("start"):
        handle = _opened(service.SERVICE_START | service.SERVICE_QUERY_STATUS)
        service.StartService(handle, None)
    state, code = _waited(handle, service.SERVICE_START_PENDING, patience)
    if state != service.SERVICE_RUNNING:
        why = f"it ended with {code}" if code else "it has not reported that it runs"
        raise ServiceError(f"cannot start the service: {why}; read {log_file()} and the event log")


def stop_service(patience: float) -> None:
    """Stop the service in order, and return when it has stopped."""
    service = pywin32("win32service")
    with translated("stop"):
        handle = _opened(service.SERVICE_STOP | service.SERVICE_QUERY_STATUS)
        service.ControlService(handle, service.SERVICE_CONTROL_STOP)
    state, _ = _waited(handle, service.SERVICE_STOP_PENDING, patience)
    if state != service.SERVICE_STOPPED:
        raise ServiceError(f"the service has not stopped within {patience:.0f} seconds")


def remove_service(patience: float) -> None:
    """Stop the service if it runs, and remove it. Configuration, journal and logs stay."""
    service = pywin32("win32service")
    with translated("remove"):
        handle = _opened(0x10000 | service.SERVICE_QUERY_STATUS)
    if service.QueryServiceStatus(handle)[1] != service.SERVICE_STOPPED:
        stop_service(patience)
    with translated("remove"):
        service.DeleteService(handle)
    pywin32("win32evtlogutil").RemoveSourceFromRegistry(NAME)


def _opened(access: int) -> Any:
    service = pywin32("win32service")
    manager = service.OpenSCManager(None, None, service.SC_MANAGER_CONNECT)
    return service.OpenService(manager, NAME, access)


def _waited(handle: Any, pending: int, patience: float) -> tuple[int, int]:
    """The state after *pending*, and the exit code of the bridge; or *pending* if that lasts."""
    service, give_up = pywin32("win32service"), time.monotonic() + patience
    while True:
        status = service.QueryServiceStatus(handle)
        waits = status[1] == pending or (
            pending == service.SERVICE_STOP_PENDING and status[1] == service.SERVICE_RUNNING
        )
        if not waits or time.monotonic() > give_up:
            return status[1], status[4] or status[3]
        time.sleep(0.2)


def log_file() -> Path:
    """Where the service logs everything."""
    return program_data() / "logs" / "bridge.log"


class _Translation:
    """Turns the errors of pywin32 into sentences."""

    def __init__(self, action: str) -> None:
        self._action = action

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        code = getattr(error, "winerror", None)
        if isinstance(error, pywin32("pywintypes").error) and code is not None:
            why = _SENTENCES.get(code) or str(getattr(error, "strerror", error)).strip().rstrip(".")
            raise ServiceError(f"cannot {self._action} the service: {why}") from error


def translated(action: str) -> _Translation:
    """A context in which an error of Windows becomes a `ServiceError` about *action*."""
    return _Translation(action)


def pywin32(module: str) -> Any:
    """A module of pywin32; raises `ServiceError` where there is none."""
    if os.name != "nt":
        raise ServiceError("there are Windows services only on Windows; on Linux, use systemd")
    try:
        return import_module(module)
    except ImportError:
        raise ServiceError(
            "the service needs pywin32: pip install 'scheduled-events-bridge[windows]'"
        ) from None
