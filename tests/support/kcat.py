"""kcat, a Kafka client that shares no code with the bridge."""

import json
from typing import Any

from support.debian import run_tool


async def kcat(*arguments: str, stdin: bytes = b"", timeout: float = 20) -> bytes:
    return await run_tool("kcat", *arguments, stdin=stdin, patience=timeout)


async def kcat_read(bootstrap: str, topic: str, count: int, *settings: str) -> list[dict[str, Any]]:
    """The first records of a topic in kcat's JSON: topic, partition, offset, key, payload, headers."""
    reading = ["-C", "-q", "-J", "-o", "beginning", "-c", str(count)]
    out = await kcat("-b", bootstrap, "-t", topic, *reading, *settings)
    return [json.loads(line) for line in out.splitlines()]


async def kcat_write(
    bootstrap: str,
    topic: str,
    value: bytes,
    *settings: str,
    key: str = "",
    headers: dict[str, str] | None = None,
) -> None:
    """Publish one record: the value may hold line ends."""
    extra = [part for name, text in (headers or {}).items() for part in ("-H", f"{name}={text}")]
    keyed = ["-k", key] if key else []
    delimiter = ["-D", "\\x1e"]
    writing = ["-P", "-b", bootstrap, "-t", topic, *delimiter, *keyed, *extra, *settings]
    await kcat(*writing, stdin=value)
