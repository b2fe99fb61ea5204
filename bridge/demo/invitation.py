"""How you join the demo: a link that opens the console logged in, and lines for a terminal."""

import asyncio
import shlex
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp

from bridge.platform import control_address, control_connector

USER = "you"
_PATIENCE = 60.0
_AGAIN = 0.1


def free_port(wanted: int) -> int:
    """*wanted*, unless another program has it: then any free port."""
    for port in (wanted, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as sock:
                return int(sock.getsockname()[1])
        except OSError:
            continue
    raise OSError("127.0.0.1 has no free port")


async def console_link(state_dir: Path) -> str | None:
    """A link with a code that works once, as soon as the bridge runs; None if it does not."""
    connector = control_connector(control_address(state_dir))
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(round(_PATIENCE / _AGAIN)):
            with suppress(aiohttp.ClientConnectionError):
                known, link = await _ask(session)
                if link is not None or not known:
                    return link
            await asyncio.sleep(_AGAIN)
    return None


async def _ask(session: aiohttp.ClientSession) -> tuple[bool, str | None]:
    """Whether the bridge knows the token, and the link: the control socket answers before HTTP."""
    asked = {"token": USER}
    async with session.post("http://bridge/api/v1/session/codes", json=asked) as answer:
        known = answer.status == 201
        return known, (await answer.json())["url"] if known else None


def invitation(link: str | None, config: Path) -> str:
    """The link, and what to type in another terminal, so that the commands find this bridge."""
    lines = [] if link is None else ["Open the console; this link works once:", f"  {link}", ""]
    lines += ["In another terminal, the commands talk to this bridge after:"]
    if shutil.which("seb") is None:
        here = shlex.quote(str(Path(sys.executable).parent))
        lines.append(f'  export PATH={here}:"$PATH"')
    lines.append(f"  export SEB_CONFIG={shlex.quote(str(config))}")
    return "\n".join(lines)
