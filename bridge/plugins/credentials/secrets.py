"""Secrets: their current value, or why it is unavailable; and where clear text is allowed."""

from ipaddress import ip_address

from bridge.common.errors import Unavailable
from bridge.common.fields import Secret


def read_secret(secret: Secret, what: str) -> str:
    """The current value; *what* names the secret in the error when its file cannot be read."""
    try:
        value = secret.get()
    except OSError as error:
        raise Unavailable(f"{what} cannot be read from {secret.file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unavailable(f"{what} is not UTF-8 text in {secret.file}") from None
    if not value:
        raise Unavailable(f"{what} is empty in {secret.file}")
    return value


def is_loopback(host: str) -> bool:
    """Whether *host* is this machine, where a secret needs no TLS."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
