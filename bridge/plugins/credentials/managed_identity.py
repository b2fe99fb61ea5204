"""Tokens for the VM's managed identity, from the metadata service: no secret on the VM."""

from ipaddress import ip_address
from urllib.parse import urlencode, urlsplit

from pydantic import Field, field_validator

from bridge.common.errors import Unavailable
from bridge.plugins.credentials.tokens import AccessToken, TokenSource, ask

API_VERSION = "2018-02-01"
_PATH = "/metadata/identity/oauth2/token"
_HEADERS = {"Metadata": "true"}
_PASSING = {404, 410, 429}
"""The statuses, besides 5xx, of a metadata service that is busy or being updated."""


class ManagedIdentity(TokenSource):
    """The identity of this VM to use, and what the token is for. Not part of the polling budget."""

    resource: str = Field(
        min_length=1, description="as in https://NAMESPACE.servicebus.windows.net"
    )
    client_id: str | None = Field(None, description="of a user-assigned identity")
    endpoint: str = Field(
        "http://169.254.169.254", description="the metadata service, if it is elsewhere"
    )

    @field_validator("endpoint")
    @classmethod
    def _near(cls, url: str) -> str:
        """Keep it local: a token is as good as a password, and this is plain HTTP."""
        try:
            parts = urlsplit(url)
            address = ip_address(parts.hostname or "")
            known = parts.scheme == "http" and not parts.path.strip("/") and not parts.query
        except ValueError:
            known, address = False, ip_address("127.0.0.1")
        if not known or not (address.is_loopback or address.is_link_local):
            raise ValueError(f"{url!r} must be http:// with a link-local or loopback address")
        return url.rstrip("/")

    async def fetch(self) -> AccessToken:
        who = f"the metadata service at {urlsplit(self.endpoint).netloc}"
        query = {"api-version": API_VERSION, "resource": self.resource}
        if self.client_id is not None:
            query["client_id"] = self.client_id
        url = f"{self.endpoint}{_PATH}?{urlencode(query)}"
        answer = await ask("GET", url, who, headers=_HEADERS)
        if answer.status == 200:
            return answer.token(who)
        if answer.status in _PASSING or answer.status >= 500:
            raise answer.refusal(f"{who} is busy: it")
        refusal = answer.refusal(who)
        raise Unavailable(f"{refusal}; does this VM have the managed identity?")
