"""The configuration: found, read, checked, and said back in sentences.

`load` is the one reader of the file and of the environment; everything else gets typed values.
"""

from bridge.config.describe import describe
from bridge.config.errors import ConfigError
from bridge.config.load import fingerprint, load
from bridge.config.models import (
    Approvals,
    CloudEvents,
    Config,
    Http,
    Journal,
    ServerTLS,
    Source,
    Token,
)
from bridge.config.schema import json_schema
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
    "describe",
    "fingerprint",
    "json_schema",
    "load",
]
