"""The current credentials: headers, signing keys, and what to mask."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bridge.plugins import Key, Misconfigured, Secret, Unavailable, read_key, read_secret
from sinks.webhook.options import basic, check_value
from sinks.webhook.settings import WebhookSettings
from sinks.webhook.urls import Target


@dataclass(frozen=True, slots=True)
class Credentials:
    """Its contents are never shown."""

    headers: Mapping[str, str] = field(repr=False)
    for_proxy: Mapping[str, str] = field(repr=False)
    keys: tuple[Key, ...] = field(repr=False)
    hidden: tuple[str, ...] = field(repr=False)

    def merged(self) -> "Credentials":
        return replace(self, headers={**self.headers, **self.for_proxy})


async def present(settings: WebhookSettings, target: Target) -> Credentials:
    """Raises `Unavailable` when a file cannot be used or there is no token."""
    authorization, hidden = await _authorization(settings)
    headers = {name: _value(settings, name) for name in settings.headers}
    hidden += [value for value in headers.values() if len(value) > 3]
    hidden += _of_format(settings)
    if authorization is not None:
        headers["Authorization"] = authorization
    if target.holds_token:
        headers["Cache-Control"] = "no-store"
    signing = [read_secret(secret, "secret") for secret in settings.secret]
    for_proxy = _proxy(settings)
    hidden += [*signing, *(value.removeprefix("Basic ") for value in for_proxy.values())]
    if settings.proxy is not None and settings.proxy.password is not None:
        hidden.append(read_secret(settings.proxy.password, "the proxy's password"))
    return Credentials(headers, for_proxy, tuple(map(_key, signing)), tuple(hidden))


async def _authorization(settings: WebhookSettings) -> tuple[str | None, list[str]]:
    """The header, and what to mask of it."""
    if settings.basic is not None:
        password = read_secret(settings.basic.password, "the password")
        header = basic(settings.basic.username, password)
        return header, [password, header.removeprefix("Basic ")]
    if settings.bearer is not None:
        token = _checked(read_secret(settings.bearer, "bearer"), "the token")
    elif settings.tokens is not None:
        token = await settings.tokens.token()
    else:
        return None, []
    return f"Bearer {token}", [token]


def _of_format(settings: WebhookSettings) -> list[str]:
    """Secrets that a format puts into the body; an answer may repeat them."""
    keys = dict(settings.format or ())
    return [read_secret(key, name) for name, key in keys.items() if isinstance(key, Secret)]


def _value(settings: WebhookSettings, name: str) -> str:
    what = f"header {name}"
    return _checked(read_secret(settings.headers[name], what), what)


def _checked(value: str, what: str) -> str:
    """The configuration cannot check what is in a file, so check it here."""
    try:
        return check_value(value, what)
    except ValueError as error:
        raise Unavailable(str(error)) from None


def _key(text: str) -> Key:
    try:
        key = read_key(text)
    except Misconfigured as error:
        raise Unavailable(f"secret: {error}") from None
    if not key.private:
        raise Unavailable("secret: a public key (whpk_) cannot sign; give the private one (whsk_)")
    return key


def _proxy(settings: WebhookSettings) -> dict[str, str]:
    proxy = settings.proxy
    if proxy is None or proxy.username is None or proxy.password is None:
        return {}
    password = read_secret(proxy.password, "the proxy's password")
    return {"Proxy-Authorization": basic(proxy.username, password)}
