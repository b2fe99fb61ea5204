"""Which headers a configuration may add to a request, and what may stand in them."""

import base64
import re

MOST = 50
LONGEST = 8192
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[!-~](?:[ !-~]*[!-~])?")
_OURS = {
    *("accept-encoding", "connection", "content-encoding", "content-length", "content-type"),
    *("expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade", "user-agent"),
}
_OUR_PREFIXES = ("ce-", "webhook-")


def check_name(name: object) -> str:
    """Return *name*, or raise ValueError when it is no header, or one that the bridge sets."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a header; write it as in X-Team")
    if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
        raise ValueError(f"the bridge sets {name} itself; leave it out")
    return name


def check_value(value: str, what: str) -> str:
    """Return *value*, or raise ValueError when it could break out of its header."""
    if len(value) > LONGEST or not _VALUE.fullmatch(value):
        raise ValueError(
            f"{what} must be visible ASCII characters on one line, with spaces only between them,"
            f" and at most {LONGEST}"
        )
    return value


def basic(username: str, password: str) -> str:
    """RFC 7617, in UTF-8."""
    pair = f"{username}:{password}".encode()
    return f"Basic {base64.b64encode(pair).decode('ascii')}"
