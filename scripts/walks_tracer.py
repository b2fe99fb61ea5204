#!/usr/bin/env python3
"""`seb run` under a profiler that notes which modules of `bridge` and `sinks` run, for `walks.py`.

A module counts when a function of it is called or resumed. Imports, class bodies and comprehensions
do not count. A module that has only constants or dataclasses is not seen, because none of its own
functions run. At SIGUSR1 the modules are written to `seen.json` beside the configuration, in the
order of their first calls, and forgotten.
"""

import inspect
import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import bridge.cli

COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class Tracer:
    """Notes modules in the order of their first call; a signal writes the list and starts over."""

    def __init__(self, root: Path, file: Path) -> None:
        self._root = root
        self._file = file
        self._seen: dict[str, None] = {}
        self._modules: dict[str, str | None] = {}

    def install(self) -> None:
        signal.signal(signal.SIGUSR1, self._tell)
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _tell(self, *_: object) -> None:
        seen, self._seen = self._seen, {}
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps([*seen]), encoding="utf-8")
        draft.replace(self._file)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name in COMPREHENSIONS:
            return
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a class or a module
            return
        module = self._module(code.co_filename)
        if module and module not in self._seen and not self._importing(frame.f_back):
            self._seen[module] = None

    def _importing(self, frame: FrameType | None) -> bool:
        """Whether the call is made while a module of ours is imported."""
        while frame is not None:
            if frame.f_code.co_name == "<module>" and self._module(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    def _module(self, file: str) -> str | None:
        if file not in self._modules:
            self._modules[file] = self._name(Path(file))
        return self._modules[file]

    def _name(self, path: Path) -> str | None:
        if not any(path.is_relative_to(self._root / ours) for ours in ("bridge", "sinks")):
            return None
        parts = path.relative_to(self._root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(config: Path) -> int:
    Tracer(Path(str(bridge.__file__)).parent.parent, config.with_name("seen.json")).install()
    return bridge.cli.main(["run", "-c", str(config)])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
