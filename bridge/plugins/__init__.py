"""The plugin interface: what a sink, a format and an approval source are, and how to find them.

A sink connects, sends and closes. It does not loop, back off, count or log deliveries: the bridge
does that, once, for all of them. To write one, write a `Settings` class with its keys and an async
context manager that yields `send`, join them in a `SinkPlugin`, and name that in the entry-point
group `scheduled_events_bridge.sinks`. An approval source is the same in the other direction: it
yields deliveries, and is found in `scheduled_events_bridge.approvals`. A format encodes a
CloudEvent in another way; it is pure, and found in `scheduled_events_bridge.formats`.

Read `sinks` first, then `formats` and `sources`. `placeholders` puts the VM's names into topics
and paths, `entry_points` finds plugins, and `credentials` is what several of them log in with.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bridge.common.errors import Gone, Misconfigured, Rejected, Unavailable
from bridge.common.fields import Duration, Secret, Settings, Size, write_duration
from bridge.core.cloudevent import CloudEvent, PresentState, class_id, kind_of
from bridge.plugins.formats import Format, FormatPlugin, FormatSettings, read_format
from bridge.plugins.placeholders import Place
from bridge.plugins.sinks import (
    Delivered,
    Only,
    Result,
    Retry,
    Send,
    SinkPlugin,
    SinkSettings,
    open_format,
)
from bridge.plugins.sources import ApprovalPlugin, ApprovalSettings, Delivery, Listening

if TYPE_CHECKING:
    from bridge.common.signatures import Key, read_key, sign
    from bridge.common.spelling import marks_cloudevent
    from bridge.core.severity import Severity, severity
    from bridge.plugins.credentials.managed_identity import ManagedIdentity
    from bridge.plugins.credentials.oauth import OAuth
    from bridge.plugins.credentials.secrets import is_loopback, read_secret
    from bridge.plugins.credentials.tls import TLS, TLSOption
    from bridge.plugins.credentials.tokens import TokenSource

__all__ = [
    "TLS",
    "ApprovalPlugin",
    "ApprovalSettings",
    "CloudEvent",
    "Delivered",
    "Delivery",
    "Duration",
    "Format",
    "FormatPlugin",
    "FormatSettings",
    "Gone",
    "Key",
    "Listening",
    "ManagedIdentity",
    "Misconfigured",
    "OAuth",
    "Only",
    "Place",
    "PresentState",
    "Rejected",
    "Result",
    "Retry",
    "Secret",
    "Send",
    "Settings",
    "Severity",
    "SinkPlugin",
    "SinkSettings",
    "Size",
    "TLSOption",
    "TokenSource",
    "Unavailable",
    "class_id",
    "is_loopback",
    "kind_of",
    "marks_cloudevent",
    "open_format",
    "read_format",
    "read_key",
    "read_secret",
    "severity",
    "sign",
    "write_duration",
]


_LATE = {
    "bridge.common.signatures": ("Key", "read_key", "sign"),
    "bridge.common.spelling": ("marks_cloudevent",),
    "bridge.core.severity": ("Severity", "severity"),
    "bridge.plugins.credentials.managed_identity": ("ManagedIdentity",),
    "bridge.plugins.credentials.oauth": ("OAuth",),
    "bridge.plugins.credentials.secrets": ("is_loopback", "read_secret"),
    "bridge.plugins.credentials.tls": ("TLS", "TLSOption"),
    "bridge.plugins.credentials.tokens": ("TokenSource",),
}


def __getattr__(name: str) -> Any:
    """Import what few plugins need, such as credentials, only when one needs it."""
    for module, names in _LATE.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
