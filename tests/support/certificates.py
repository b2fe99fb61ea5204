"""A certificate authority for the tests, and certificates good and bad from it."""

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

CLIENT = "bridge-client"
HERE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as PEM files of their own and in one."""

    certificate: Path
    key: Path
    both: Path


class Certificates:
    """Where the files of one authority are; `issue` writes them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = directory / "ca.crt"
        self.other_authority = directory / "other-ca.crt"  # has signed only other_client
        self.server = self.identity("server")
        self.expired_server = self.identity("expired-server")
        self.wrong_host_server = self.identity("wrong-host-server")
        self.client = self.identity("client")
        self.expired_client = self.identity("expired-client")
        self.other_client = self.identity("other-client")

    def identity(self, name: str) -> Identity:
        stem = self.directory / name
        return Identity(*(stem.with_suffix(end) for end in (".crt", ".key", ".pem")))

    def context(self, identity: Identity | None = None) -> ssl.SSLContext:
        """A client's TLS context that trusts this authority and checks the host name."""
        context = ssl.create_default_context(cafile=self.authority)
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        return context


def issue(directory: Path) -> Certificates:
    """Make an authority and the certificates it signs, in one folder."""
    directory.mkdir(parents=True, exist_ok=True)
    files = Certificates(directory)
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(files.authority))
    other.cert_pem.write_to_path(str(files.other_authority))
    now = dt.datetime.now(dt.UTC)
    past: dict[str, Any] = {
        "not_before": now - dt.timedelta(days=7),
        "not_after": now - dt.timedelta(days=1),
    }
    write(files.server, authority.issue_cert(*HERE))
    write(files.expired_server, authority.issue_cert(*HERE, **past))
    write(files.wrong_host_server, authority.issue_cert("elsewhere.example"))
    write(files.client, authority.issue_cert(CLIENT, common_name=CLIENT))
    write(files.expired_client, authority.issue_cert(CLIENT, common_name=CLIENT, **past))
    write(files.other_client, other.issue_cert(CLIENT, common_name=CLIENT))
    return files


def write(identity: Identity, issued: trustme.LeafCert) -> None:
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    key = pkcs8(issued.private_key_pem.bytes())
    identity.certificate.write_bytes(chain)
    identity.key.write_bytes(key)
    identity.both.write_bytes(key + chain)


def pkcs8(key: bytes) -> bytes:
    """The only form of a key that Kafka reads."""
    loaded = load_pem_private_key(key, password=None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
