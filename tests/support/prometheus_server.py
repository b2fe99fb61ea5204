"""Prometheus for the tests: a real server that scrapes a bridge and evaluates our alerts."""

import json
import math
from dataclasses import dataclass
from typing import Any

import aiohttp
from support.daemon import HOST, Daemon
from support.debian import tool
from support.deployed import RULES

EVERY = "200ms"
JOB = "scheduled-events-bridge"
_NOTE_PID = 'echo $$ > "$0"; exec "$@"'


@dataclass
class Prometheus(Daemon):
    """Scrapes `target`, an address, several times a second."""

    target: str = ""

    @property
    def listeners(self) -> list[str]:
        return ["HTTP"]

    def start(self) -> None:
        config = {
            "global": {
                "scrape_interval": EVERY,
                "scrape_timeout": EVERY,
                "evaluation_interval": EVERY,
            },
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [self.target]}]}],
        }
        file = self.folder / "prometheus.json"
        file.write_text(json.dumps(config))
        self.launch(
            "sh", "-c", _NOTE_PID, str(self.pid), str(tool("prometheus")),
            f"--config.file={file}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={HOST}:{self.ports['HTTP']}",
        )  # fmt: skip
        self.until_listening([self.ports["HTTP"]])

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """The samples that answer a query now, without those that are not a number."""
        async with aiohttp.ClientSession() as session:
            url = f"http://{HOST}:{self.ports['HTTP']}/api/v1/query"
            async with session.post(url, data={"query": query}) as answer:
                if answer.status == 503:  # it still starts
                    return []
                told = await answer.json()
        assert told["status"] == "success", (query, told)
        found = told["data"]["result"]
        return [one for one in found if not math.isnan(float(one["value"][1]))]
