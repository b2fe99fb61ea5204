"""`seb keygen`: a key for an approver, and the lines that make the bridge accept it."""

import argparse
import base64
import json
import os
import re
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bridge.cli.shell import FAILED, USAGE, complain, tell
from bridge.cli.text import as_json
from bridge.common.errors import Misconfigured
from bridge.policy.allow import Name
from bridge.policy.votes import is_reserved

_BYTES = 32
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("approver", metavar="APPROVER", help="the approver's name, such as orders")
    parser.add_argument(
        "--hmac",
        action="store_true",
        help="a shared secret instead of Ed25519; every bridge that checks it could also sign",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="where to write the private key (default: APPROVER.key); - prints it on stdout",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """What the approver keeps, and what goes into the bridge's configuration."""

    kind: str
    private: str
    public: str | None

    @classmethod
    def ed25519(cls) -> "KeyPair":
        """Raises `Misconfigured` if the library is not installed."""
        try:
            from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415  HMAC needs no library
        except ImportError:
            extra = "pip install 'scheduled-events-bridge[ed25519]'"
            raise Misconfigured(f"Ed25519 needs a library: {extra}. Or give --hmac.") from None
        key = ed25519.Ed25519PrivateKey.generate()
        public = _encoded("whpk", key.public_key().public_bytes_raw())
        return cls("ed25519", _encoded("whsk", key.private_bytes_raw()), public)

    @classmethod
    def hmac(cls) -> "KeyPair":
        return cls("hmac", _encoded("whsec", secrets.token_bytes(_BYTES)), None)

    def entry(self, approver: str) -> dict[str, object]:
        """The entry of `approvals.allow`. A shared secret stays in a file, not in the entry."""
        key: object = self.public or {"file": _shared(approver)}
        return {"approver": approver, "keys": [{self.kind: key}]}


def _shared(approver: str) -> str:
    """Where the bridge may find a shared secret."""
    name = approver if _PLAIN.fullmatch(approver) else "approver"
    return f"/etc/scheduled-events-bridge/{name}.key"


def _encoded(prefix: str, raw: bytes) -> str:
    return f"{prefix}_{base64.b64encode(raw).decode('ascii')}"


def run(args: argparse.Namespace) -> int:
    """Never overwrites a file: its key may be in use."""
    make: Callable[[], KeyPair] = KeyPair.hmac if args.hmac else KeyPair.ed25519
    try:
        name = _name(args.approver)
        pair = make()
        file = None if args.output == "-" else _write(args.output or _file_name(name), pair)
    except (ValueError, Misconfigured) as error:
        complain(str(error))
        return USAGE
    except FileExistsError as error:
        complain(f"{error.filename} exists. A key may be in use, so it is never overwritten.")
        return FAILED
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}.")
        return FAILED
    entry = pair.entry(name)
    if args.json:
        told = {"approver": name, "type": pair.kind, "allow": entry}
        tell(as_json(told | ({"file": str(file)} if file else {"private": pair.private})))
    elif file is None:
        tell(f"{pair.private}\n")
        sys.stderr.write(_configuration(entry, pair))
    else:
        tell(f"{_configuration(entry, pair)}\n{_keep(file, pair)}")
    return 0


def _name(text: str) -> str:
    """Raises ValueError with a sentence for a name that `approvals.allow` refuses."""
    try:
        name = TypeAdapter[str](Name).validate_python(text)
    except ValidationError as error:
        why = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise ValueError(f"{text!r} cannot be an approver: {why}.") from None
    if is_reserved(name):
        raise ValueError(f"{text!r} cannot be an approver: the bridge uses this name itself.")
    return name


def _file_name(approver: str) -> str:
    if not _PLAIN.fullmatch(approver):
        raise ValueError(f"{approver!r} cannot name a file; say where the key goes with --output.")
    return f"{approver}.key"


def _write(name: str, pair: KeyPair) -> Path:
    """Create the file for its owner only. Raises OSError if it exists."""
    path = Path(name)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{pair.private}\n")
    return path


def _configuration(entry: dict[str, object], pair: KeyPair) -> str:
    """The YAML for the file; a name that YAML might read otherwise is in quotes."""
    name = str(entry["approver"])
    plain = _PLAIN.fullmatch(name) and name.casefold() not in {"true", "false", "null"}
    key = pair.public or f"{{file: {json.dumps(_shared(name))}}}"
    lines = [
        "# Add this to the configuration of each bridge:",
        "approvals:",
        "  allow:",
        f"    - approver: {name if plain else json.dumps(name)}",
        f"      keys: [{{{pair.kind}: {key}}}]",
    ]
    if pair.public is None:
        lines.insert(1, "# and copy the secret into the file that it names.")
    return "\n".join(lines) + "\n"


def _keep(file: Path, pair: KeyPair) -> str:
    what = "The shared secret" if pair.public is None else "The private key"
    return (
        f"# {what} is in {file}; only its owner can read it.\n"
        f"# The approver keeps it and signs with: seb approve EVENT_ID --sign-with {file}\n"
    )
