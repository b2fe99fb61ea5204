"""How commands reach the running bridge: its control socket, else its HTTP address with a token."""

import hashlib
import json
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridge.config import Config, Http
from bridge.platform import control_address, control_connector, state_dirs

if TYPE_CHECKING:
    from aiohttp import BaseConnector, ClientResponse

TIMEOUT = 30.0
_ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  where to connect instead


class Unreachable(Exception):
    """No bridge answers here; the sentence says where it was looked for."""


class Refused(Exception):
    """The bridge answered, but not with what was asked for."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the bridge; *absent* is what to say when nobody is there."""

    place: str
    absent: str
    base: str
    connector: Callable[[], "BaseConnector"]
    headers: Mapping[str, str]


async def call(method: str, path: str, *, config: Config, token: str | None = None) -> Any:
    """Ask the running bridge, and return what its answer holds, decoded; None for no content.

    Raises `Unreachable` and `Refused`, each with one sentence for the user.
    """
    async with reach(method, path, config=config, token=token, timeout=TIMEOUT) as answer:
        body = await answer.read()
    if not answer.ok:
        raise Refused(answer.status, _sentence(answer.status, body))
    try:
        return json.loads(body) if body else None
    except ValueError:
        raise Refused(answer.status, f"What answers {path} is not a bridge.") from None


@asynccontextmanager
async def reach(
    method: str,
    path: str,
    *,
    config: Config,
    token: str | None = None,
    timeout: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncGenerator["ClientResponse"]:
    """The answer of the first way to the bridge that is open, to be read as it comes."""
    import aiohttp  # noqa: PLC0415  commands without a bridge start faster

    absent: list[str] = []
    for way in _ways(config, token, absent):
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=10)
        async with aiohttp.ClientSession(connector=way.connector(), timeout=limit) as session:
            sent = {**way.headers, **(headers or {})}
            url = way.base + path
            try:
                async with session.request(method, url, headers=sent, allow_redirects=False) as got:
                    yield got
                    return
            except aiohttp.ClientConnectorError as error:
                absent.append(_absent(way, error.os_error))
            except (aiohttp.ClientError, TimeoutError) as error:
                why = str(error) or "no answer in time"
                sentence = f"The bridge at {way.place} gave no proper answer: {why}."
                raise Unreachable(sentence) from error
    raise Unreachable(f"No bridge is running here ({', '.join(absent)}).")


def _ways(config: Config, token: str | None, absent: list[str]) -> Iterator[Way]:
    for directory in [config.state_dir] if config.state_dir else state_dirs():
        try:
            address = control_address(directory)
        except OSError as error:
            absent.append(f"{error.filename} {error.strerror}")
            continue
        yield Way(
            place=address,
            absent=f"no control socket in {directory}",
            base="http://bridge",
            connector=lambda address=address: control_connector(address),  # type: ignore[misc]
            headers={},
        )
    if config.http.listen is not None and config.http.listen.port:
        yield _http_way(config.http, token)


def _http_way(http: Http, token: str | None) -> Way:
    from aiohttp import TCPConnector  # noqa: PLC0415

    if http.listen is None:
        raise ValueError("http.listen is null")
    host = _ALL_ADDRESSES.get(http.listen.host, http.listen.host)
    place = str(http.listen._replace(host=host))
    token = token or os.environ.get("SEB_TOKEN")
    return Way(
        place=place,
        absent=f"nothing at {place}",
        base=f"{'https' if http.tls else 'http'}://{place}",
        connector=lambda: TCPConnector(ssl=_pin(http)),
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )


def _pin(http: Http) -> Any:
    """The configuration names the very certificate that must answer, whatever name is in it."""
    from aiohttp import Fingerprint  # noqa: PLC0415

    if http.tls is None:
        return True
    try:
        text = http.tls.certificate.read_text(encoding="ascii")
        begin = text.index("-----BEGIN CERTIFICATE-----")
        end = text.index("-----END CERTIFICATE-----", begin)
        first = text[begin : end + len("-----END CERTIFICATE-----")]
        return Fingerprint(hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest())
    except (OSError, ValueError):
        return True


def _absent(way: Way, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"{way.place} is not open to you"
    return way.absent


def _sentence(status: int, body: bytes) -> str:
    """What the problem document or a probe says, or at least the status."""
    try:
        problem = json.loads(body)
        if "reasons" in problem:
            return "; ".join(f"{one['what']}: {one['why']}" for one in problem["reasons"])
        return str(problem.get("why") or problem["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"The bridge answered with status {status}."
