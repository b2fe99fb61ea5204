"""How commands reach the running bridge: by its control socket, or by HTTP with a token."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bridge.cli.location import Location
from bridge.platform import control_address, control_connector
from bridge.runtime.http_address import HttpAddress, certificate_sha256, read_address

if TYPE_CHECKING:
    from aiohttp import BaseConnector, ClientResponse

TIMEOUT = 30.0
_WITHHELD = (
    "This needs a token. Yours was not sent to {0}, because anyone on this machine could listen "
    "there. If you are sure that this is the bridge, give --url {0}"
)


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
    """One way to the bridge; *absent* is the message when nothing listens there.

    `withheld` says that there is a token, but nothing proves that the bridge is at this address.
    """

    place: str
    absent: str
    base: str
    connector: Callable[[], "BaseConnector"]
    headers: Mapping[str, str] = field(default_factory=dict)
    withheld: bool = False


async def call(
    method: str,
    path: str,
    *,
    where: Location,
    token: str | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Send a request to the running bridge and return the decoded response; None for no content.

    Raises `Unreachable` and `RequestRefused`, each with one sentence for the user.
    """
    request = ApiRequest(method, path, body, headers or {})
    async with reach(request, where=where, token=token) as answer:
        found = await answer.read()
    if not answer.ok:
        raise refusal(answer.status, found)
    try:
        return json.loads(found) if found else None
    except ValueError:
        raise RequestRefused(answer.status, f"{path} was not answered by a bridge.") from None


@asynccontextmanager
async def reach(
    request: ApiRequest, *, where: Location, token: str | None = None
) -> AsyncGenerator["ClientResponse"]:
    """Send the request over the first working way to the bridge; the caller streams the response.

    A token goes only where the bridge is for certain: to a URL that the user names, to the address
    that the running bridge wrote into its state directory, and to verified https.
    """
    import aiohttp  # noqa: PLC0415  commands without a bridge start faster

    absent: list[str] = []
    limit = aiohttp.ClientTimeout(total=request.timeout, sock_connect=10, sock_read=request.silence)
    for way in _ways(where, token, absent):
        async with aiohttp.ClientSession(connector=way.connector(), timeout=limit) as session:
            try:
                async with session.request(
                    request.method,
                    way.base + request.path,
                    data=request.body,
                    headers={**way.headers, **request.headers},
                    allow_redirects=False,
                ) as got:
                    if got.status == 401 and way.withheld:
                        raise RequestRefused(401, _WITHHELD.format(way.base))
                    yield got
                    return
            except aiohttp.ClientConnectorError as error:
                absent.append(_absent(way, error.os_error))
            except (aiohttp.ClientError, TimeoutError) as error:
                why = str(error) or "no answer in time"
                sentence = f"The bridge at {way.place} did not answer properly: {why}."
                raise Unreachable(sentence) from error
    raise Unreachable(f"No bridge is running here ({', '.join(absent)}).")


def _ways(where: Location, token: str | None, absent: list[str]) -> Iterator[Way]:
    """What the user names is the only way; else sockets before HTTP."""
    if where.socket is not None:
        socket = control_address(where.socket) if where.socket.is_dir() else str(where.socket)
        yield _control_way(socket, f"no control socket at {socket}")
    elif where.url is not None:
        yield _http_way(HttpAddress(where.url), token)
    else:
        yield from _sockets(where, absent)
        yield from _addresses(where, token)


def _sockets(where: Location, absent: list[str]) -> Iterator[Way]:
    for directory in where.state_dirs:
        try:
            address = control_address(directory)
        except OSError as error:
            absent.append(f"{error.filename} {error.strerror}")
            continue
        yield _control_way(address, f"no control socket in {directory}")


def _addresses(where: Location, token: str | None) -> Iterator[Way]:
    """The addresses that running bridges wrote down, then the configured one."""
    written = [one for one in map(read_address, where.state_dirs) if one is not None]
    for one in written:
        yield _http_way(one, token)
    if where.listen is None or not where.listen.port:
        return
    scheme = "https" if where.tls else "http"
    pin = certificate_sha256(where.certificate) if where.certificate else None
    configured = HttpAddress(f"{scheme}://{where.listen.on_this_machine}", pin)
    if configured.url not in {one.url for one in written}:
        yield _http_way(configured, token if where.tls else None, withheld=token is not None)


def _control_way(address: str, absent: str) -> Way:
    return Way(address, absent, "http://bridge", lambda: control_connector(address))


def _http_way(address: HttpAddress, token: str | None, *, withheld: bool = False) -> Way:
    """Over https the certificate must be the pinned one, or a valid one for the host."""
    from aiohttp import Fingerprint, TCPConnector  # noqa: PLC0415  a control socket needs none

    place = address.url.partition("://")[2]
    pin = Fingerprint(bytes.fromhex(address.certificate)) if address.certificate else True
    return Way(
        place=place,
        absent=f"nothing at {place}",
        base=address.url,
        connector=lambda: TCPConnector(ssl=pin),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        withheld=withheld and token is None,
    )


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
