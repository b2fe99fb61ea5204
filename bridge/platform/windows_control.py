"""The service manager and the running bridge: what each of them tells the other, across threads."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Controls:
    """One bridge as a Windows service. A stop that comes before the bridge runs is not lost."""

    report: Callable[[str], object] = len
    """Gets what a bridge under systemd would notify, such as `READY=1`."""
    _stop: Callable[[], object] | None = None
    _reload: Callable[[], object] | None = None
    _stopping: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        with self._lock:
            self._stopping, call = True, self._stop
        if call is not None:
            call()

    def reload(self) -> None:
        with self._lock:
            call = self._reload
        if call is not None:
            call()

    @contextmanager
    def attached(self, stop: Callable[[], object], reload: Callable[[], object]) -> Generator[None]:
        """Call *stop* and *reload* when the service manager asks; both must be thread-safe."""
        with self._lock:
            self._stop, self._reload = stop, reload
            late = self._stopping
        if late:
            stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = self._reload = None


CONTROLS = Controls()
"""Of this process."""
