"""Programs from Debian that the tests use as independent clients and servers."""

import asyncio
import functools
import os
import shutil
from pathlib import Path

from support.lacking import lacking
from support.scripts import Unobtainable, run_script


class ToolFailed(Exception):
    """What a program said when it failed."""


def tool(name: str, package: str | None = None) -> Path:
    """Where the program is; installed from its package (of the same name, if not given) on demand."""
    try:
        return _find(name, package or name)
    except Unobtainable as error:
        lacking(f"{name} is not to be had: {error}")


async def run_tool(
    name: str, *arguments: str, package: str | None = None, stdin: bytes = b"", patience: float = 30
) -> bytes:
    """What the program prints; it is killed when it takes too long. Raises `ToolFailed`."""
    program = await asyncio.to_thread(tool, name, package)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), patience)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ToolFailed((out + err).decode())
    return out


@functools.cache
def _find(name: str, package: str) -> Path:
    # Debian keeps servers in folders that are not on every user's PATH.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        unpacked = run_script("debian-packages", package)
        found = shutil.which(name, path=os.pathsep.join([unpacked, path]))
    if found is None:
        raise Unobtainable(f"the package {package} has no program {name}")
    return Path(found)
