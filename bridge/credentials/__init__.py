"""What several technologies need to know whom they talk to, and to prove who they are."""

from bridge.credentials.loopback import is_loopback
from bridge.credentials.managed_identity import ManagedIdentity
from bridge.credentials.oauth import OAuth
from bridge.credentials.secrets import read_secret
from bridge.credentials.tls import TLS, TLSOption
from bridge.credentials.tokens import TokenSource

__all__ = [
    "TLS",
    "ManagedIdentity",
    "OAuth",
    "TLSOption",
    "TokenSource",
    "is_loopback",
    "read_secret",
]
