"""Find, read, check and describe the configuration.

Only `load` reads the file and the environment; everything else gets typed values.
Import `describe` and `schema` where you use them: only `seb check` and the schema need them.
"""

from bridge.config.approvals import ApprovalsSettings
from bridge.config.errors import ConfigError
from bridge.config.load import changes, differs, fingerprint, load
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
    "changes",
    "differs",
    "fingerprint",
    "load",
]
