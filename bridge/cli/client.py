"""How commands reach the running bridge: by its control socket, or by HTTP with a token."""

import hashlib
import json
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bridge.config import Config, HttpSettings
from bridge.platform import control_address, control_connector, state_dirs

if TYPE_CHECKING:
    from aiohttp import BaseConnector, ClientResponse

TIMEOUT = 30.0
_ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  the address to connect to instead


class Unreachable(Exception):
    """No bridge answers here; the message says where we looked."""


class RequestRefused(Exception):
    """The bridge refused the request; `problem` is its problem document."""

    def __init__(
        self, status: int, sentence: str, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.problem = problem or {}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; `silence` is how many seconds may pass between two pieces of the response."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = TIMEOUT
    silence: float | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the bridge; *absent* is the message when nothing listens there."""

    place: str
    absent: str
    base: str
    connector: Callable[[], "BaseConnector"]
    headers: Mapping[str, str]


async def call(
    method: str,
    path: str,
    *,
    config: Config,
    token: str | None = None,
    url: str | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Send a request to the running bridge and return the decoded response; None for no content.

    Raises `Unreachable` and `RequestRefused`, each with one sentence for the user.
    """
    request = ApiRequest(method, path, body, headers or {})
    async with reach(request, config=config, token=token, url=url) as answer:
        found = await answer.read()
    if not answer.ok:
        raise refusal(answer.status, found)
    try:
        return json.loads(found) if found else None
    except ValueError:
        raise RequestRefused(answer.status, f"{path} was not answered by a bridge.") from None


@asynccontextmanager
async def reach(
    request: ApiRequest, *, config: Config, token: str | None = None, url: str | None = None
) -> AsyncGenerator["ClientResponse"]:
    """Send the request over the first working route to the bridge; the caller streams the response.

    If *url* is given, it is the only way, and no token is sent there.
    """
    import aiohttp  # noqa: PLC0415  commands without a bridge start faster

    absent: list[str] = []
    limit = aiohttp.ClientTimeout(total=request.timeout, sock_connect=10, sock_read=request.silence)
    for way in _ways(config, token, absent) if url is None else [_url_way(url)]:
        async with aiohttp.ClientSession(connector=way.connector(), timeout=limit) as session:
            try:
                async with session.request(
                    request.method,
                    way.base + request.path,
                    data=request.body,
                    headers={**way.headers, **request.headers},
                    allow_redirects=False,
                ) as got:
                    yield got
                    return
            except aiohttp.ClientConnectorError as error:
                absent.append(_absent(way, error.os_error))
            except (aiohttp.ClientError, TimeoutError) as error:
                why = str(error) or "no answer in time"
                sentence = f"The bridge at {way.place} did not answer properly: {why}."
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
            connector=lambda address=address: control_connector(address),  # type: ignore[misc]  # mypy cannot infer a lambda's default
            headers={},
        )
    if config.http.listen is not None and config.http.listen.port:
        yield _http_way(config.http, token)


def _http_way(http: HttpSettings, token: str | None) -> Way:
    from aiohttp import TCPConnector  # noqa: PLC0415  a control socket needs none

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


def _url_way(url: str) -> Way:
    from aiohttp import TCPConnector  # noqa: PLC0415  a control socket needs none

    return Way(url, f"nothing at {url}", url, TCPConnector, {})


def _pin(http: HttpSettings) -> Any:
    """Pin the certificate that the configuration names; the host name in it does not matter."""
    from aiohttp import Fingerprint  # noqa: PLC0415  a control socket needs none

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
        return f"you do not have permission to open {way.place}"
    return way.absent


def refusal(status: int, body: bytes) -> RequestRefused:
    """The sentence from the problem document or the probe, or else the status."""
    sentence = f"The bridge answered with status {status}."
    try:
        problem = json.loads(body)
        if "reasons" in problem:
            said = "; ".join(f"{one['what']}: {one['why']}" for one in problem["reasons"])
        else:
            said = str(problem.get("why") or problem["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return RequestRefused(status, sentence)
    if status == 401 and "reason" not in problem:  # a bad signature comes with a reason
        said = f"{said} (--token or SEB_TOKEN)"
    return RequestRefused(status, said, problem)
