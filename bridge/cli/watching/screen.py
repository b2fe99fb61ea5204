"""The terminal as a screen that is drawn again and again, and given back as it was."""

import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"


@dataclass(slots=True)
class Screen:
    """Writes a picture only if it differs from the one that is there."""

    _drawn: tuple[int, int, Sequence[str]] = field(default=(0, 0, ()))

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows; the user may change them at any time."""
        size = os.get_terminal_size(sys.stdout.fileno())
        return size.columns or 80, size.lines or 24

    def draw(self, lines: Sequence[str], size: tuple[int, int]) -> None:
        if (*size, lines) == self._drawn:
            return
        self._drawn = (*size, lines)
        body = f"{_CLEAR_LINE}\r\n".join(lines)
        sys.stdout.write(f"{_HOME}{body}{_CLEAR_LINE}{_CLEAR_REST}")
        sys.stdout.flush()


@contextmanager
def screen() -> Generator[Screen]:
    """Use the alternate screen, so that what was on the terminal comes back at the end."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    sys.stdout.write(_ENTER)
    try:
        yield Screen()
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
