"""Linux and other POSIX systems: directories, the lock, the boot, signals."""

import asyncio
import os
import signal
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridge.platform.errors import LOCK_FILE, refusal

SYSTEM_STATE = Path("/var/lib/scheduled-events-bridge")
CONFIG_FILE = Path("/etc/scheduled-events-bridge/config.yaml")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SMALL = 4096
_STOP = (signal.SIGINT, signal.SIGTERM)


def config_file() -> Path:
    """The default path of the configuration."""
    return CONFIG_FILE


def state_dirs() -> list[Path]:
    """Possible state directories, best first; commands look for the socket in this order."""
    return [SYSTEM_STATE, *_user_state()]


def default_state_dir() -> Path:
    """The first of `state_dirs` that we can write, created if necessary; else the first."""
    for path in state_dirs():
        with suppress(OSError):
            if os.access(private_directory(path), os.W_OK | os.X_OK):
                return path
    return SYSTEM_STATE


def _user_state() -> list[Path]:
    """In the home directory of the user database: only `config` reads the environment."""
    import pwd  # noqa: PLC0415  not everywhere

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return []
    return [Path(home, ".local/state/scheduled-events-bridge")]


def private_directory(path: Path) -> Path:
    """Create *path* for its owner only; an existing directory keeps its mode."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def private_file(path: Path) -> None:
    """Create an empty file for its owner only, whatever the umask; leave an existing file alone.

    If that fails, the next one to open the file reports why.
    """
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)


def read_owned(path: Path) -> tuple[str, int] | None:
    """The text of a small file, and its owner, if nobody else can have written it.

    The owner must be root, ourselves, or the owner of the directory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            trusted = {0, os.geteuid(), path.parent.stat().st_uid}
            plain = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o022
            if plain and status.st_uid in trusted:
                return file.read(_SMALL).decode(errors="replace"), status.st_uid
    except OSError:
        return None
    return None


def runs_as(pid: int, user: int) -> bool:
    """Whether *pid* is a process of *user*; without /proc, whether it is any process."""
    with suppress(OSError):
        if Path("/proc/self").exists():
            return Path(f"/proc/{pid}").stat().st_uid == user
        os.kill(pid, 0)
        return True
    return False


def open_to_others(path: Path) -> bool:
    """Whether anyone but its owner has access to *path* and to the directories above it."""
    try:
        return all(place.stat().st_mode & 0o077 for place in (path, path.parent))
    except OSError:
        return False


@contextmanager
def lock(state_dir: Path) -> Generator[None]:
    """Lock *state_dir* for this process, or raise `AlreadyRunning`.

    The kernel releases the lock when the process ends, in any way. The file stays: deleting it
    would let two processes lock two files of one name. Raises OSError when it cannot be written.
    """
    import fcntl  # noqa: PLC0415  not everywhere

    path = private_directory(state_dir) / LOCK_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            raise refusal(state_dir, pid) from None
        _write_pid(descriptor)
        try:
            yield
        finally:
            # Unlock all copies of the descriptor: a child that is just starting has one.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _write_pid(descriptor: int) -> None:
    """Write our process id. The lock works without it, so a full disk does not matter."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def boot_id() -> str | None:
    """An id that differs between boots of this machine."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def dhcp_options() -> list[tuple[str, bytes]]:
    """Nothing: there is no registry, and leases are in files."""
    return []


@contextmanager
def signals(stop: Callable[[], object], reload: Callable[[], object]) -> Generator[None]:
    """Call *stop* on the first SIGINT or SIGTERM, and *reload* on each SIGHUP, in the event loop.

    The second SIGINT or SIGTERM ends the process immediately: someone has lost patience.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (*_STOP, signal.SIGHUP)}

    def stopping() -> None:
        for number in _STOP:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        stop()

    for number in _STOP:
        loop.add_signal_handler(number, stopping)
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def raise_open_files(wanted: int) -> int:
    """Let this process open *wanted* files, or as many as it may; return how many."""
    import resource  # noqa: PLC0415  not everywhere

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return open_files()


def open_files() -> int:
    """How many files this process may have open at the same time."""
    import resource  # noqa: PLC0415  not everywhere

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**31 if soft == resource.RLIM_INFINITY else soft


def forbid_core_dumps() -> None:
    """A core dump would have every secret in memory. Programs that we start inherit this."""
    import resource  # noqa: PLC0415  not everywhere

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
