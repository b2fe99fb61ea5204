"""Tokens by OAuth 2.0 client credentials (RFC 6749, section 4.4)."""

import base64
from typing import Literal
from urllib.parse import quote_plus, urlsplit

from pydantic import Field, field_validator

from bridge.common.fields import Secret
from bridge.plugins.credentials.secrets import is_loopback, read_secret
from bridge.plugins.credentials.tls import TLSOption
from bridge.plugins.credentials.tokens import AccessToken, TokenSource, ask


class OAuth(TokenSource):
    """Our account at the identity provider, and what the token is for."""

    token_url: str = Field(description="https; http on loopback only")
    client_id: str = Field(min_length=1)
    client_secret: Secret
    scope: str | None = Field(None, description="scopes, separated by spaces")
    audience: str | None = Field(None, description="for providers that require it")
    secret_in: Literal["header", "body"] = Field(
        "header", description="where the provider expects client_id and client_secret"
    )
    tls: TLSOption = None

    @field_validator("token_url")
    @classmethod
    def _safe(cls, url: str) -> str:
        wrong = f"{url!r} is not a token URL; write https://HOST/PATH"
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise ValueError(wrong) from None
        if parts.scheme not in {"http", "https"} or not host or parts.username or parts.fragment:
            raise ValueError(wrong)
        if parts.scheme == "http" and not is_loopback(host):
            raise ValueError(f"{url!r} would send the secret in clear text; write https://")
        return url

    async def fetch(self) -> AccessToken:
        who = f"the identity provider at {urlsplit(self.token_url).netloc}"
        secret = read_secret(self.client_secret, "client_secret")
        form = {"grant_type": "client_credentials", "scope": self.scope, "audience": self.audience}
        headers: dict[str, str] = {}
        if self.secret_in == "body":  # noqa: S105  a place, not a password
            form |= {"client_id": self.client_id, "client_secret": secret}
        else:
            headers["Authorization"] = _basic(self.client_id, secret)
        given = {key: value for key, value in form.items() if value is not None}
        tls = self.tls.context() if self.tls else None
        answer = await ask("POST", self.token_url, who, form=given, headers=headers, tls=tls)
        if answer.status != 200:
            raise answer.refusal(who, secret)
        return answer.token(who)


def _basic(client_id: str, secret: str) -> str:
    """RFC 6749, 2.3.1: both are form-encoded first, so that they may contain a colon."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
