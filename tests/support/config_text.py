"""Pieces of configuration files, as text, that several tests put together."""

TAIL_SOURCE = "votes: {type: tail, path: /topic, trust: transport}"
WHSEC = f"whsec_{'A' * 32}"
MTLS = "tls: {certificate: a, key: b, client_ca: ca.pem}"


def in_format(written: str, kind: str = "stdout") -> str:
    return f"sinks:\n  out:\n    type: {kind}\n    format: {written}\n"


def approvals(*keys: str, sinks: str = "{a: {type: file, path: /a}}") -> str:
    return f"{{sinks: {sinks}, approvals: {{{', '.join(keys)}}}}}"
