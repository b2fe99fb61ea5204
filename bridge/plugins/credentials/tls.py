"""TLS for connections to a server: CAs and our certificate, read again when the files change."""

import ssl
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from bridge.common.errors import Unavailable
from bridge.common.fields import Secret, Settings
from bridge.plugins.credentials.secrets import read_secret

_Stamps = tuple[tuple[int, int, int], ...]


class TLS(Settings):
    """Certificates are PEM files. At least TLS 1.2, and the server's name is always checked."""

    ca: Path | None = Field(None, description="the CA to trust; default: the system's CAs")
    certificate: Path | None = Field(None, description="our certificate, with its chain")
    key: Path | None = Field(None, description="its key, if it is not in the certificate file")
    key_password: Secret | None = Field(None, description="the password of an encrypted key")
    insecure: bool = Field(
        default=False, description="check neither the server's certificate nor its name"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.key and not self.certificate:
            raise ValueError("key has no effect without certificate")
        if self.key_password and not self.certificate:
            raise ValueError("key_password has no effect without certificate")
        if self.insecure and self.ca:
            raise ValueError("insecure: true checks nothing, so ca has no effect; remove one")
        return self

    def context(self) -> ssl.SSLContext:
        """The same context until a file changes. Raises `Unavailable` when a file is unusable."""
        stamps = self._stamps()
        known = _contexts.get(self)
        if known is None or known[0] != stamps:
            known = _contexts[self] = (stamps, self._build())
        return known[1]

    def _stamps(self) -> _Stamps:
        return tuple(_stamp(path) for path in (self.ca, self.certificate, self.key) if path)

    def _build(self) -> ssl.SSLContext:
        # Not create_default_context: it writes session keys to the file in SSLKEYLOGFILE.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca:
            _trust(context, self.ca)
        else:
            context.load_default_certs()
        if self.certificate:
            self._show(context, self.certificate, self.key or self.certificate)
        return context

    def _show(self, context: ssl.SSLContext, certificate: Path, key: Path) -> None:
        asked = False

        def password() -> str:
            """Called only for an encrypted key; without it, OpenSSL would ask on the terminal."""
            nonlocal asked
            asked = True
            if self.key_password is None:
                raise Unavailable(f"the key in {key} is encrypted, so it needs key_password")
            return read_secret(self.key_password, "key_password")

        try:
            context.load_cert_chain(certificate, key, password)
        except ssl.SSLError as error:
            raise _refusal(error, certificate, key, asked=asked) from None
        except OSError as error:
            raise Unavailable(f"{certificate}, {key}: {error.strerror}") from None


_contexts: dict[TLS, tuple[_Stamps, ssl.SSLContext]] = {}


def _stamp(path: Path) -> tuple[int, int, int]:
    """Open the file as well: it may exist but not be readable."""
    try:
        with path.open("rb"):
            status = path.stat()
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _trust(context: ssl.SSLContext, ca: Path) -> None:
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError:
        raise Unavailable(f"{ca} contains no PEM certificate to trust") from None
    except OSError as error:
        raise Unavailable(f"{ca} cannot be read: {error.strerror}") from None


def _refusal(error: ssl.SSLError, certificate: Path, key: Path, *, asked: bool) -> Unavailable:
    """OpenSSL's reasons are few; *asked* is whether the key is encrypted."""
    if error.reason == "KEY_VALUES_MISMATCH":
        return Unavailable(f"the key in {key} does not match the certificate in {certificate}")
    if asked:
        return Unavailable(f"key_password does not decrypt the key in {key}")
    if certificate == key:
        return Unavailable(f"{certificate} does not contain a PEM certificate and its key")
    return Unavailable(f"{certificate} and {key} are not a PEM certificate and its key")


def _switch(value: object) -> object:
    """`tls: true` is TLS with the system's CAs, `tls: false` is no TLS."""
    if isinstance(value, bool):
        return {} if value else None
    return value


def _or_switch(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [*schema["anyOf"], {"type": "boolean"}]


TLSOption = Annotated[
    TLS | None,
    BeforeValidator(_switch),
    Field(description="true, or {ca, certificate, key, …}", json_schema_extra=_or_switch),
]
"""The type of a sink's `tls` key: true, false, or a mapping."""
