"""The syslog sink as its tests use it: settings, a batch sent, and a receiver's side of TLS."""

import ssl
from collections.abc import Sequence
from typing import Any

from support.certificates import Certificates, Identity
from support.until import until

from bridge.plugins import CloudEvent, Place, Result
from sinks.syslog import SyslogSettings, sink

PLACE = Place({"vm_name": "web-1"}, sink="siem")
FOR_EACH = {"keep_connected": False}


def configured(address: str = "udp://siem.example", **keys: Any) -> SyslogSettings:
    return SyslogSettings.model_validate({"type": "syslog", "address": address} | keys)


async def deliver(address: str, cloudevents: Sequence[CloudEvent], **keys: Any) -> list[Result]:
    async with sink.open(configured(address, **keys), PLACE) as send:
        return list(await send(cloudevents))


def serving(certificates: Certificates, identity: Identity | None = None) -> ssl.SSLContext:
    identity = identity or certificates.server
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.certificate, identity.key)
    return context


async def comes_to(receiver: Any, count: int) -> None:
    await until(lambda: len(receiver.messages) >= count, f"{count} messages")
