"""Find the endpoint: the well-known address, or the host address from DHCP and the kernel."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from bridge import platform
from bridge.metadata.answers import Answer, SourceProblem
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata
from bridge.metadata.leases import (
    DHCLIENT,
    NETWORKD,
    ROUTES,
    dhclient_address,
    networkd_address,
    registry_address,
    routes_to_host,
)

NOT_FOUND = "no metadata service was found: is this an Azure VM?"
WELL_KNOWN = "http://169.254.169.254"
_HOST = IPv4Address("168.63.129.16")
_LINK_LOCAL = IPv4Network("169.254.0.0/16")
_LARGEST_FILE = 1024 * 1024


class Candidate(NamedTuple):
    """A possible address of the endpoint. A refused one is reported, but never contacted."""

    url: str
    origin: str
    refused: bool = False


class Attempt(NamedTuple):
    """The result for a candidate, in words for `seb check --connect` and the log."""

    candidate: Candidate
    verdict: str
    chosen: bool


Probe = Callable[[Candidate], Awaitable[Answer | SourceProblem]]


async def discover(
    api_version: str,
    *,
    configured: str | None = None,
    remembered: str | None = None,
    found: Sequence[Candidate] | None = None,
    probe: Probe | None = None,
    budget: Budget | None = None,
) -> tuple[Candidate | None, list[Attempt]]:
    """Try the candidates in turn; return the first that is the endpoint, and all attempts.

    The first is None when nothing answers. A configured URL is used as it is, without a request.
    """
    if configured is not None:
        candidate = Candidate(configured.rstrip("/"), "configured")
        return candidate, [Attempt(candidate, "configured, so nothing else is tried", chosen=True)]
    if found is None:
        found = await asyncio.to_thread(candidates, remembered=remembered)
    ask = probe or asker(api_version, budget or Budget())
    attempts: list[Attempt] = []
    for candidate in found:
        attempts.append(await _attempt(candidate, ask))
        if attempts[-1].chosen:
            return candidate, attempts
    return None, attempts


def asker(api_version: str, budget: Budget) -> Probe:
    """The real probe: one GET, with a short time to connect and a long time to answer."""

    async def ask(candidate: Candidate) -> Answer | SourceProblem:
        async with Metadata(candidate.url, api_version, budget=budget) as metadata:
            return await metadata.fetch()

    return ask


def candidates(*, remembered: str | None = None, root: Path = Path("/")) -> list[Candidate]:
    """All candidates, the most likely first, each URL once."""
    unique: dict[str, Candidate] = {}
    for candidate in _candidates(remembered, root):
        unique.setdefault(candidate.url, candidate)
    return list(unique.values())


def _candidates(remembered: str | None, root: Path) -> Iterator[Candidate]:
    if remembered:
        url = remembered.rstrip("/")
        yield Candidate(url, "remembered", refused=not _trusted(url))
    yield Candidate(WELL_KNOWN, "well-known")
    for path, address in leased(root):
        yield from _at(address, f"lease {path}")
    for interface, options in platform.dhcp_options():
        host = registry_address(options, datetime.now(UTC))
        if host is not None:
            yield from _at(host, f"registry {interface}")
    if routes_to_host(_text(root / ROUTES)):
        yield from _at(_HOST, "route")
    yield from _at(_HOST, "constant")


def leased(root: Path) -> list[tuple[Path, IPv4Address]]:
    """The lease files with an address in option 245 that is valid now."""
    now = datetime.now(UTC)
    found = [(path, networkd_address(_text(path))) for path in sorted(root.glob(NETWORKD))]
    for pattern in DHCLIENT:
        files = sorted(root.glob(pattern))
        found += [(path, dhclient_address(_text(path), now)) for path in files]
    return [(path, address) for path, address in found if address is not None]


def _at(address: IPv4Address, origin: str) -> Iterator[Candidate]:
    """Try both ports: Microsoft's samples disagree, with 80 in one and 8080 in the other."""
    url = f"http://{address}"
    refused = not _trusted(url)
    yield Candidate(url, origin, refused=refused)
    if not refused and address not in _LINK_LOCAL:
        yield Candidate(f"{url}:8080", origin)


def _trusted(url: str) -> bool:
    """Whether the address is one of Azure's. No other is contacted: DHCP can be spoofed."""
    try:
        address = IPv4Address(urlsplit(url).hostname or "")
    except ValueError:
        return False
    return address == _HOST or address in _LINK_LOCAL


def _text(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_LARGEST_FILE).decode("utf-8", "replace")
    return ""


async def _attempt(candidate: Candidate, ask: Probe) -> Attempt:
    if candidate.refused:
        verdict = "refused: Azure uses only 168.63.129.16 and 169.254.0.0/16"
        return Attempt(candidate, verdict, chosen=False)
    answer = await ask(candidate)
    if isinstance(answer, SourceProblem):
        stays = _is_well_known(candidate) and answer.reason != "unreachable"
        said = "found, and kept despite a problem" if stays else "not the endpoint"
        return Attempt(candidate, f"{said}: {answer.detail}", chosen=stays)
    if answer.document is None and not answer.empty:
        # 304, though we never ask conditionally.
        return Attempt(candidate, "answered 304", chosen=_is_well_known(candidate))
    what = "an empty body" if answer.empty else "a document"
    return Attempt(candidate, f"answered with {what}", chosen=True)


def _is_well_known(candidate: Candidate) -> bool:
    return candidate.origin == "well-known" or candidate.url == WELL_KNOWN
