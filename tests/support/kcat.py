"""kcat, a Kafka client that shares no code with the bridge."""

import asyncio
import json
from typing import Any

from support.debian import tool


class KcatError(Exception):
    """What kcat said on standard error when it failed."""


async def kcat(*arguments: str, stdin: bytes = b"", timeout: float = 20) -> bytes:
    """What kcat prints; it is killed when it takes too long."""
    program = await asyncio.to_thread(tool, "kcat")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), timeout)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise KcatError(err.decode())
    return out


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
