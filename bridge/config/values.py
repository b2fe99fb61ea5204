"""Read single values of the configuration: endpoint, api-version, addresses, names."""

import re
from datetime import date
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from bridge import platform
from bridge.plugins.credentials.secrets import is_loopback

OLDEST_VERSION = date(2017, 3, 1)
SINK_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  the address to connect to instead
_WEB_PORTS = {"http": 80, "https": 443}
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(-preview)?")


def _endpoint(text: str) -> str:
    if text == "auto":
        return text
    wrong = f"{text!r} is not an endpoint; write auto, or a URL like http://127.0.0.1:8081"
    try:
        url = urlsplit(text)
        known = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        raise ValueError(wrong) from None
    if not known or "@" in url.netloc:
        raise ValueError(wrong)
    if url.path.strip("/") or url.query or url.fragment:
        raise ValueError(f"{text!r} has a path; write only {url.scheme}://{url.netloc}")
    return f"{url.scheme}://{url.netloc}"


def _traces(text: str) -> str:
    """The URL for traces; one without a path gets the path that OTLP names."""
    wrong = f"{text!r} is not a URL like http://127.0.0.1:4318 or https://otlp.example/v1/traces"
    try:
        url = urlsplit(text)
        known = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        raise ValueError(wrong) from None
    if not known or "@" in url.netloc or url.query or url.fragment or not text.isprintable():
        raise ValueError(wrong)
    path = url.path if url.path.strip("/") else "/v1/traces"
    return f"{url.scheme}://{url.netloc}{path}"


def check_traces(url: str, *, insecure: bool) -> None:
    """Raise ValueError if traces may not or cannot be sent there."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not (insecure or is_loopback(parts.hostname or "")):
        raise ValueError(f"{parts.hostname} is not loopback, so otlp needs https or insecure: true")
    try:
        found = find_spec("opentelemetry.proto")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ValueError("otlp needs: pip install 'scheduled-events-bridge[telemetry]'")


def _api_version(value: object) -> str:
    text = value.isoformat() if isinstance(value, date) else value
    match = _DATE.fullmatch(text) if isinstance(text, str) else None
    try:
        if match is not None and date.fromisoformat(match[1]) >= OLDEST_VERSION:
            return match[0]
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not an api-version; write a date, {OLDEST_VERSION} or later")


def _directory(path: Path) -> Path:
    """Make it absolute, so that a later change of directory does not move it."""
    if path.parts[:1] and path.parts[0].startswith("~"):
        raise ValueError("~ is not expanded; write the full path")
    return path.absolute()


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line of text, not empty")
    return text


def _uri_reference(text: str) -> str:
    if not text or not text.isprintable() or " " in text or len(text) > 512:
        raise ValueError("must be a URI reference, such as /my/source, without spaces")
    return text


def _group(name: str) -> str:
    platform.check_group(name)
    return name


def _public_urls(value: object) -> object:
    """One URL or several; null is none."""
    return () if value is None else (value,) if isinstance(value, str) else value


def _network(value: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(value if isinstance(value, str) else "")
    except ValueError:
        wrong = f"{value!r} is not an address or a network, as in 10.0.0.7 or 10.0.0.0/24"
        raise ValueError(wrong) from None


EndpointUrl = Annotated[str, AfterValidator(_endpoint)]
ApiVersion = Annotated[
    str,
    BeforeValidator(_api_version),
    WithJsonSchema({"type": "string", "pattern": f"^{_DATE.pattern}$"}),
]
Directory = Annotated[Path, AfterValidator(_directory)]
Line = Annotated[str, AfterValidator(_one_line)]
TracesUrl = Annotated[str, AfterValidator(_traces)]
UriReference = Annotated[str, AfterValidator(_uri_reference)]
Group = Annotated[Line, AfterValidator(_group)]
Network = Annotated[
    IPv4Network | IPv6Network,
    BeforeValidator(_network),
    WithJsonSchema({"type": "string", "examples": ["10.0.0.7", "10.0.0.0/24"]}),
]


class Listen(NamedTuple):
    """A host and a port to listen on; port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def on_this_machine(self) -> Self:
        """The same port on loopback, if it listens on all addresses."""
        return self._replace(host=_ALL_ADDRESSES.get(self.host, self.host))

    @classmethod
    def parse(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        wrong = f"{value!r} is not an address; write HOST:PORT, as in 127.0.0.1:17245 or [::1]:80"
        try:
            url = urlsplit(f"//{value}" if isinstance(value, str) else "")
            host, port = url.hostname, url.port
        except ValueError:
            raise ValueError(wrong) from None
        if not host or port is None or url.netloc != str(value) or "@" in url.netloc:
            raise ValueError(wrong)
        return cls(host, port)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: Any) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^.+:\d{1,5}$", "examples": ["127.0.0.1:17245"]}


class PublicUrl(NamedTuple):
    """Where a proxy serves the bridge: its origin as browsers send it, and the host in it."""

    origin: str
    host: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https://")

    @classmethod
    def parse(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        wrong = f"{value!r} is not a public URL; write one like https://bridge.example/seb"
        try:
            url = urlsplit(value if isinstance(value, str) else "")
            host, port = url.hostname, url.port
        except ValueError:
            raise ValueError(wrong) from None
        plain = not (url.query or url.fragment or "@" in url.netloc)
        if url.scheme not in _WEB_PORTS or not host or not plain or not str(value).isprintable():
            raise ValueError(wrong)
        place = f"[{host}]" if ":" in host else host
        at = "" if port in (None, _WEB_PORTS[url.scheme]) else f":{port}"
        return cls(f"{url.scheme}://{place}{at}", host, url.path.rstrip("/"))

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )


PublicUrls = Annotated[
    tuple[PublicUrl, ...],
    BeforeValidator(_public_urls),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "uri", "examples": ["https://bridge.example/seb"]},
                {"type": "array", "items": {"type": "string", "format": "uri"}},
                {"type": "null"},
            ]
        }
    ),
]
