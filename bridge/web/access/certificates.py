"""The subject of a client certificate in one line, as OpenSSL and nginx write it."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 512
_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "givenName": "GN",
    "jurisdictionCountryName": "jurisdictionC",
    "jurisdictionLocalityName": "jurisdictionL",
    "jurisdictionStateOrProvinceName": "jurisdictionST",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "street",
    "surname": "SN",
    "userId": "UID",
}
_ESCAPED = frozenset(b',+"\\<>;')


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that the TLS layer has verified; `until` is Unix time."""

    subject: str
    until: float

    @property
    def has_usable_subject(self) -> bool:
        return 0 < len(self.subject) <= LONGEST


def read(found: Mapping[str, Any] | None) -> Certificate | None:
    """The certificate from `getpeercert`; None if there is none."""
    if not found:
        return None
    return Certificate(
        subject(found["subject"]), float(ssl.cert_time_to_seconds(found["notAfter"]))
    )


def subject(names: tuple[tuple[tuple[str, str], ...], ...]) -> str:
    """The subject by RFC 2253: last part first, in ASCII, with short names where they exist."""
    return ",".join(
        "+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in reversed(parts))
        for parts in reversed(names)
    )


def _escaped(value: str) -> str:
    text = "".join(_character(one) for one in value.encode(errors="surrogateescape"))
    if text[-1:] == " " and len(value) > 1:
        text = f"{text[:-1]}\\ "
    return f"\\{text}" if text[:1] in {" ", "#"} else text


def _character(byte: int) -> str:
    if byte in _ESCAPED:
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:02X}"
