"""Clients with certificates, and a bridge that asks for them and has an event to vote on."""

import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import trustme
from support.certificates import Identity, write
from support.served_bridge import Side, announce
from support.voting_bridge import Polls, polls

from bridge.journal.votes import votes

PATH = "/api/v1/approvals"
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
ORDERS = "CN=orders,OU=shop,O=example"
BILLING = "CN=billing,OU=shop,O=example"
TOKENS = [{"name": "ops", "token": "ops-secret"}]
OPS = {"Authorization": "Bearer ops-secret"}


@dataclass(frozen=True, slots=True)
class Files:
    """An authority with one below it, and clients of both and of another authority."""

    ca: Path
    below: Path
    server: Identity
    orders: Identity
    billing: Identity
    lowly: Identity
    stranger: Identity

    @classmethod
    def write(cls, folder: Path) -> "Files":
        authority, other = trustme.CA(), trustme.CA()
        below = authority.create_child_ca()
        paths = {name: folder / f"{name}.pem" for name in ("ca", "below")}
        authority.cert_pem.write_to_path(str(paths["ca"]))
        below.cert_pem.write_to_path(str(paths["below"]))
        issued = {
            "server": (authority, "localhost"),
            "orders": (authority, "orders"),
            "billing": (authority, "billing"),
            "lowly": (below, "orders"),
            "stranger": (other, "orders"),
        }
        made = {name: _issue(folder, name, *by) for name, by in issued.items()}
        return cls(paths["ca"], paths["below"], **made)


def _issue(folder: Path, name: str, ca: trustme.CA, common: str) -> Identity:
    one = Identity(*(folder / f"{name}.{end}" for end in ("crt", "key", "pem")))
    issued = ca.issue_cert(
        "127.0.0.1",
        common_name=common,
        organization_name="example",
        organization_unit_name="shop",
    )
    write(one, issued)
    return one


def tls(files: Files, **more: Any) -> dict[str, Any]:
    keys = {"certificate": files.server.certificate, "key": files.server.key}
    return {**keys, "client_ca": files.ca, "client_certificates": "optional", **more}


@asynccontextmanager
async def certified_polls(
    folder: Path, files: Files, *, http: dict[str, Any] | None = None, **approvals: Any
) -> AsyncGenerator[Polls]:
    """A bridge at which certificates are asked for, with an event to vote on."""
    given = {"tls": tls(files), **(http or {})}
    async with polls(folder, http=given, **{"require": "any", **approvals}) as made:
        await announce(made.journal, EVENT_ID)
        yield made


async def ask(
    made: Polls, files: Files, shown: Identity | None, method: str, path: str, **more: Any
) -> tuple[int, Any]:
    """A client session with this certificate, or without one."""
    context = ssl.create_default_context(cafile=files.ca)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        side = Side(session, f"https://{made.served.served.http}")
        return await side.ask(method, path, **more)


async def vote(
    made: Polls,
    files: Files,
    shown: Identity | None,
    headers: Mapping[str, str] | None = None,
    **said: Any,
) -> tuple[int, Any]:
    body = json.dumps({"eventId": EVENT_ID, **said})
    headers = {"Content-Type": "application/json", **(headers or {})}
    return await ask(made, files, shown, "POST", PATH, data=body, headers=headers)


async def standing(made: Polls) -> list[tuple[str, bool, str]]:
    """The votes on the event: who, whether verified, and by which channel."""
    found = await made.journal.run(lambda store: votes(store, EVENT_ID, 1))
    return [(one.approver, one.verified, one.via) for one in found]
