"""The keys of the sink `splunk`: where the collector is, and where Splunk stores events."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from bridge.plugins import Secret, SinkSettings, TLSOption, is_loopback

_COLLECTOR = "/services/collector"
_PLACED = ("index", "sourcetype", "source", "host")


class SplunkSettings(SinkSettings):
    """Which collector, with which token, and what goes along with the events."""

    type: Literal["splunk"]
    url: str = Field(description="https://HOST:8088")
    token: Secret = Field(description="the token of the HTTP Event Collector")
    index: str | None = Field(None, min_length=1, description="default: the token's index")
    sourcetype: str | None = Field(None, min_length=1, description="default: azure:scheduledevents")
    source: str | None = Field(None, min_length=1, description="default: the CloudEvent's source")
    host: str | None = Field(None, min_length=1, description="default: the VM that published it")
    acknowledge: bool = Field(
        default=False, description="delivered once indexed, not once accepted"
    )
    proxy: str | None = Field(None, description="http://HOST:PORT of an HTTP proxy")
    tls: TLSOption = None
    insecure: bool = Field(default=False, description="allow http:// to a host other than loopback")

    @field_validator("url")
    @classmethod
    def _base(cls, url: str) -> str:
        """Remove the path of the collector, which many people paste along."""
        base = _plain(url, "https://HOST:8088", {"http", "https"}).rstrip("/")
        for end in ("/event", "/raw"):
            base = base.removesuffix(_COLLECTOR + end)
        return base.removesuffix(_COLLECTOR)

    @field_validator("proxy")
    @classmethod
    def _proxy(cls, proxy: str | None) -> str | None:
        if proxy is None:
            return None
        found = _plain(proxy, "http://HOST:PORT", {"http"}).rstrip("/")
        if urlsplit(found).path:
            raise ValueError(f"{proxy!r} has a path; write http://HOST:PORT")
        return found

    @model_validator(mode="after")
    def _safe(self) -> Self:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http" and not (is_loopback(host) or self.insecure):
            raise ValueError(
                f"the token would go to {host} in clear text; write https://, or insecure: true"
            )
        if parts.scheme == "http" and self.tls is not None:
            raise ValueError("tls has no effect with http://; write https://")
        return self

    @property
    def placed(self) -> dict[str, str]:
        """Where Splunk stores it, as configured."""
        return {name: getattr(self, name) for name in _PLACED if getattr(self, name) is not None}

    def endpoint(self, name: str) -> str:
        return f"{self.url}{_COLLECTOR}/{name}"

    def describe(self) -> str:
        what = "CloudEvents" if self.format is None else f"CloudEvents as {self.words}"
        how = [f"into index {self.index}"] * (self.index is not None)
        how += ["waiting until they are indexed"] * self.acknowledge
        how += [f"through the proxy {self.proxy}"] * (self.proxy is not None)
        how += ["over TLS without verification"] * bool(self.tls and self.tls.insecure)
        how += ["without TLS"] * self.url.startswith("http://")
        return ", ".join([f"sends {what} to Splunk's HTTP Event Collector at {self.url}", *how])


def _plain(url: str, example: str, schemes: set[str]) -> str:
    """A URL of a server and perhaps a path. The error does not quote it: it may be a password."""
    wrong = f"must look like {example}, without user, query and fragment"
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if parts.scheme not in schemes or not host or port == 0 or not url.isprintable():
        raise ValueError(wrong)
    if "@" in parts.netloc or parts.query or parts.fragment or " " in url.strip():
        raise ValueError(wrong)
    return url.strip()
