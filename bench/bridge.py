"""The bridge as a process of its own, as `seb run` starts it."""

import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from bench.processes import Process, process

TRANSITIONS = {
    "types": [f"azure.scheduledevents.{kind}.v1" for kind in ("scheduled", "started", "completed")]
}
"""For `only`: a sink that gets transitions alone can be counted."""


def configure(folder: Path, url: str, sinks: Mapping[str, Any], **more: Any) -> Path:
    """Write a configuration file; *more* are its other sections."""
    folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {
        "source": {"endpoint": url, "poll_interval": "1s", **more.pop("source", {})},
        "state_dir": str(folder / "state"),
        "http": {"listen": "127.0.0.1:0"},
        **({"sinks": dict(sinks)} if sinks else {}),
        **more,
    }
    file = folder / "config.yaml"
    file.write_text(json.dumps(settings))
    return file


def command(config: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("seb")), "run", "-c", str(config)]


@contextlib.asynccontextmanager
async def bridge(
    folder: Path, url: str, sinks: Mapping[str, Any], output: Path | None = None, **more: Any
) -> AsyncGenerator[Process]:
    """`seb run` with *sinks* and its state in *folder*; it polls *url*, which is on loopback."""
    config = configure(folder, url, sinks, **more)
    async with process(command(config), folder / "bridge.log", output) as running:
        yield running
