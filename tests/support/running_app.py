"""The whole bridge in this process, on a configuration file: served, reloaded and stopped."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.until import until

from bridge.app import lifecycle as module
from bridge.app.lifecycle import App
from bridge.config import Config, load
from bridge.journal import Journal


@dataclass
class Place:
    """A directory with a configuration file, and the files of its sinks."""

    folder: Path
    endpoint: str
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    def write(self, **changes: Any) -> Config:
        """Write the file with these keys changed, and read it."""
        self.keys = {
            "source": {"endpoint": self.endpoint, "poll_interval": "200ms"},
            "state_dir": str(self.state_dir),
            "stop_grace": "5s",
            "sinks": {"left": self.sink("left")},
            "http": {"listen": None},
            **self.keys,
            **changes,
        }
        self.file.write_text(yaml.safe_dump(self.keys))
        return self.load()

    def load(self) -> Config:
        return load(self.file, {})

    def sink(self, name: str, **more: Any) -> dict[str, Any]:
        return {"type": "file", "path": str(self.folder / f"{name}.jsonl"), **more}

    def told(self, name: str, *without: str) -> list[str]:
        path = self.folder / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        kinds = [json.loads(line)["type"].split(".", 2)[2].removesuffix(".v1") for line in lines]
        return [kind for kind in kinds if kind not in without]


def ready(app: App) -> bool:
    """The configuration is audited last of all."""
    return app.runtime.status.source.last_good is not None and app.runtime._audited.year > 1


@contextlib.asynccontextmanager
async def serving(place: Place) -> AsyncGenerator[App]:
    """A bridge in this process, until it is stopped."""
    journal = Journal(place.state_dir / "journal.db")
    await journal.open()
    app = App(module._runtime(place.load(), journal), place.load, place.state_dir)
    task = asyncio.create_task(app.serve())
    try:
        await until(lambda: task.done() or ready(app))
        yield app
        app._stop.set()
        async with asyncio.timeout(10):
            assert await task == 0
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await journal.close()


async def reload(app: App, caplog: pytest.LogCaptureFixture) -> str:
    """Reload, and return the log records about it."""
    caplog.clear()
    caplog.set_level(logging.INFO, "bridge.app")
    app._again.set()

    def said() -> list[str]:
        return [r.message for r in caplog.records if r.message.startswith("configuration.")]

    await until(said)
    return said()[0]
