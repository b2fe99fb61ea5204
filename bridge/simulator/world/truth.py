"""The ground truth: what really happened in the simulated world, written as it happens."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

Record = dict[str, Any]


def write_time(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds, as in all records."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Truth:
    """Records in memory and, if there is a path, as JSON lines in a file, flushed one by one."""

    def __init__(
        self, path: Path | None = None, *, tell: Callable[[Record], object] | None = None
    ) -> None:
        self.records: list[Record] = []
        self._tell = tell
        self._file: TextIO | None = path.open("a", encoding="utf-8") if path else None

    def record(self, at: datetime, what: str, **facts: Any) -> None:
        entry = {"seq": len(self.records) + 1, "at": write_time(at), "what": what, **facts}
        self.records.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
        if self._tell is not None:
            self._tell(entry)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
