"""A served bridge for votes by command, and an Azure that answers on request."""

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.bridge import Azure, Choose, last_look
from support.served_bridge import ServedBridge, bridge, config
from support.world import ME

from bridge.approvals.intake import Intake
from bridge.approvals.service import ApprovalService
from bridge.config import Config
from bridge.journal import Journal
from bridge.metadata.answers import Accepted

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
GRANTED = "granted: Azure accepted it; the event may start immediately"
ALONE = {"resources": (ME,)}
"""A scheduled event of this VM alone."""


@dataclass(slots=True)
class Polls:
    """A bridge, its StartRequests, and the configuration file for commands."""

    served: ServedBridge
    file: Path
    service: ApprovalService = field(init=False)
    told: list[list[str]] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.service = ApprovalService(self.served.runtime, Azure(self.post))

    @property
    def intake(self) -> Intake:
        return self.service.intake

    @property
    def journal(self) -> Journal:
        return self.served.journal

    async def post(self, choose: Choose) -> Accepted:
        ids = await last_look(self.journal, choose)
        await self.answers.wait()
        self.told.append(ids)
        return Accepted()

    async def run(self, module: Any, command: str, *words: str, file: Path | None = None) -> int:
        """A command as the shell would call it; the exit code."""
        parser = argparse.ArgumentParser(prog=f"seb {command}")
        module.add_arguments(parser)
        args = parser.parse_args([*words, "-c", str(file or self.file)])
        args.command = command
        return await asyncio.to_thread(module.run, args)


def write_config(file: Path, **content: Any) -> Path:
    """JSON is YAML."""
    file.write_text(json.dumps(content))
    return file


@asynccontextmanager
async def polls(
    folder: Path, *, http: dict[str, Any] | None = None, **approvals: Any
) -> AsyncGenerator[Polls]:
    """A bridge with an Azure that answers immediately, unless a test changes that."""
    usual = config(folder, **(http or {}))
    given = {"http": usual.http, "state_dir": folder, "approvals": approvals}
    async with bridge(Config.model_validate(given)) as served:
        file = write_config(folder / "seb.yaml", state_dir=str(folder), http={"listen": None})
        made = Polls(served, file)
        made.answers.set()
        task = asyncio.create_task(made.service.decisions.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
