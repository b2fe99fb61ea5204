"""The CloudEvents SDK for JavaScript: it reads our messages, and we read its messages."""

import asyncio
import functools
import json
import os
from pathlib import Path
from typing import Any

from support.lacking import lacking
from support.scripts import Unobtainable, run_script

PATIENCE = 60.0
_PROGRAMS = Path(__file__).parent / "javascript"


@functools.cache
def _libraries() -> str:
    return run_script("javascript-libs")


async def javascript(program: str, asked: list[Any]) -> list[Any]:
    """What one of the programs in `javascript/` answers to each of the questions."""
    try:
        libraries = await asyncio.to_thread(_libraries)
    except Unobtainable as error:
        lacking(f"the JavaScript SDK is not to be had: {error}")
    process = await asyncio.create_subprocess_exec(
        "node", str(_PROGRAMS / program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NODE_PATH": f"{libraries}/node_modules"},
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(json.dumps(asked).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return json.loads(out)
