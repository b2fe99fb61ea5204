"""Where the running bridge serves HTTP: a file in the state directory, for the commands.

A command sends its token only to an address that it can trust. Any local user can listen on a
port that a stopped bridge has left, so the file names the process, and a reader checks it.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bridge import platform
from bridge.config import Listen

FILE = "http.json"
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """A URL, and the SHA-256 of the server's certificate in hexadecimal if it has one."""

    url: str
    certificate: str | None = None


def address_of(listen: Listen, certificate: Path | None) -> HttpAddress:
    """How this machine reaches a bridge that listens there, with this certificate if it has one."""
    scheme = "http" if certificate is None else "https"
    pin = None if certificate is None else certificate_sha256(certificate)
    return HttpAddress(f"{scheme}://{listen.on_this_machine}", pin)


def write_address(state_dir: Path, address: HttpAddress) -> None:
    """Write the file at once or not at all; a directory that cannot be written gets none."""
    said = {
        "url": address.url,
        "certificate": address.certificate,
        "pid": os.getpid(),
        "boot": platform.boot_id(),
    }
    new = state_dir / f"{FILE}.new"
    with suppress(OSError):
        new.unlink(missing_ok=True)
        with new.open("x", encoding="ascii") as file:
            json.dump(said, file)
        new.chmod(0o644)  # the directory decides who can read it
        new.replace(state_dir / FILE)


def remove_address(state_dir: Path) -> None:
    with suppress(OSError):
        (state_dir / FILE).unlink(missing_ok=True)


def read_address(state_dir: Path) -> HttpAddress | None:
    """The address of the bridge that runs on *state_dir*; None unless the file proves it."""
    found = platform.read_owned(state_dir / FILE)
    if found is None:
        return None
    text, owner = found
    try:
        said = json.loads(text)
        address = HttpAddress(str(said["url"]), said["certificate"])
        alive = said["boot"] == platform.boot_id() and platform.runs_as(int(said["pid"]), owner)
    except (ValueError, KeyError, TypeError):
        return None
    return address if alive else None


def certificate_sha256(file: Path) -> str | None:
    """The SHA-256 of the first certificate in a PEM file; None if it cannot be read."""
    import ssl  # noqa: PLC0415  a bridge without TLS does not need it

    try:
        text = file.read_text(encoding="ascii")
        begin = text.index(_BEGIN)
        first = text[begin : text.index(_END, begin) + len(_END)]
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()
    except (OSError, ValueError):
        return None
