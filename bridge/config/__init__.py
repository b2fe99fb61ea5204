"""The configuration: found, read, checked, and said back in sentences.

`load` is the one reader of the file and of the environment; everything else gets typed values.
What only `seb check` and the schema need is imported from `describe` and `schema` where it is used.
"""

from bridge.config.approvals import Approvals
from bridge.config.errors import ConfigError
from bridge.config.load import fingerprint, load
from bridge.config.models import CloudEvents, Config, Http, Journal, ServerTLS, Source, Token
from bridge.config.values import Listen

__all__ = [
    "Approvals",
    "CloudEvents",
    "Config",
    "ConfigError",
    "Http",
    "Journal",
    "Listen",
    "ServerTLS",
    "Source",
    "Token",
    "fingerprint",
    "load",
]
