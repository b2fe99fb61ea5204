"""What tests of a served bridge share: tokens, its audit trail, its metrics, and raw requests."""

import asyncio
import json
from typing import Any

from support.served_bridge import ServedBridge, Side

TOKENS = [
    {"name": "ops", "token": "ops-secret", "scopes": ["read", "approve", "operate"]},
    {"name": "viewer", "token": "viewer-secret", "scopes": ["read"]},
    {"name": "robot", "token": "robot-secret", "scopes": ["approve"]},
    {"name": "operator", "token": "operator-secret", "scopes": ["operate"]},
    {"name": "plain", "token": "plain-secret"},
]


def with_token(token: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


async def audits(running: ServedBridge) -> list[dict[str, Any]]:
    """The data of everything that was audited, in order."""
    rows = await running.journal.run(
        lambda store: store.connection.execute(
            "SELECT body FROM outbox WHERE type LIKE '%audited%' ORDER BY seq"
        ).fetchall()
    )
    return [json.loads(body)["data"] for (body,) in rows]


async def scrape(side: Side) -> str:
    status, text = await side.ask("GET", "/metrics")
    assert status == 200
    return str(text)


async def raw(running: ServedBridge, data: bytes) -> bytes:
    """What comes back for these bytes."""
    at = running.served.http
    assert at is not None
    reader, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(data)
    if not data:
        writer.write_eof()
    answer = await asyncio.wait_for(reader.read(65536), 10)
    writer.close()
    await writer.wait_closed()
    return answer
