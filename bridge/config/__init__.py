"""The configuration: found, read, checked, and said back in sentences.

`load` is the one reader of the file and of the environment; everything else gets typed values.
What only `seb check` and the schema need is imported from `describe` and `schema` where it is used.
"""

from bridge.config.approvals import ApprovalsSettings
from bridge.config.errors import ConfigError
from bridge.config.load import fingerprint, load
from bridge.config.models import (
    Config,
    EnvelopeSettings,
    HttpSettings,
    JournalSettings,
    ServerTLS,
    SourceSettings,
    TokenSettings,
)
from bridge.config.values import Listen

__all__ = [
    "ApprovalsSettings",
    "Config",
    "ConfigError",
    "EnvelopeSettings",
    "HttpSettings",
    "JournalSettings",
    "Listen",
    "ServerTLS",
    "SourceSettings",
    "TokenSettings",
    "fingerprint",
    "load",
]
