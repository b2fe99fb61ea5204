"""Who may use a directory, a registry key or a pipe on Windows, in the language of its SDDL."""

import hashlib
import re
import struct
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

ADMINISTRATORS = "S-1-5-32-544"
SYSTEM = "S-1-5-18"
FILE, KEY = 1, 4
"""The kinds of objects whose rights `set_rights` changes."""
READ, CHANGE = "0x1200a9", "0x1301bf"
"""The rights to read and execute files, and to change and delete them too."""
_OWNER, _DACL, _PROTECTED_DACL = 0x1, 0x4, 0x80000000
_TOKEN_QUERY, _TOKEN_USER = 0x8, 1
_ALREADY_EXISTS = 183
_GROUPS = {2, 4, 5}  # of a domain, of this machine, well-known
_EVERYBODY = re.compile(r"\(A;[^;]*;[^;]*;[^;]*;[^;]*;(?:WD|BU|AU|IU|BG|AN|S-1-1-0)\)")


def sddl(*more: str, kind: str = "OICI", owner: str = "") -> str:
    """Full rights for the system and administrators, *more* entries, and nothing inherited."""
    entries = [f"(A;{kind};{'KA' if kind == 'CI' else 'FA'};;;{who})" for who in ("SY", "BA")]
    return f"{f'O:{owner}' if owner else ''}D:P{''.join(entries)}{''.join(more)}"


def entry(sid: str, rights: str = "FA", kind: str = "OICI") -> str:
    return f"(A;{kind};{rights};;;{sid})"


def service_sid(name: str) -> str:
    """The SID of the service *name*; Windows derives it from the name, and so do we."""
    digest = hashlib.sha1(name.upper().encode("utf-16-le"), usedforsecurity=False).digest()
    return "S-1-5-80-" + "-".join(str(part) for part in struct.unpack("<5I", digest))


def open_to_everybody(text: str) -> bool:
    """Whether an SDDL lets all users in, or all who are logged in; no DACL at all does so, too."""
    _, found, entries = text.partition("D:")
    return not found or "NO_ACCESS_CONTROL" in entries or bool(_EVERYBODY.search(entries))


@contextmanager
def security_attributes(text: str) -> Generator[int]:
    """The address of a SECURITY_ATTRIBUTES with this SDDL, while it is needed."""
    ctypes: Any = import_module("ctypes")
    layout = "IPi0P"  # its length, the descriptor, and whether children inherit the handle
    with _descriptor(text) as descriptor:
        made = struct.pack(layout, struct.calcsize(layout), descriptor.value, 0)
        buffer = ctypes.create_string_buffer(made, len(made))
        yield int(ctypes.addressof(buffer))


def make_directory(path: Path, text: str) -> None:
    """Create *path* with these rights from its first moment; leave an existing directory alone."""
    ctypes: Any = import_module("ctypes")
    path.parent.mkdir(parents=True, exist_ok=True)
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    with security_attributes(text) as attributes:
        if kernel.CreateDirectoryW(str(path), ctypes.c_void_p(attributes)):
            return
    error = ctypes.get_last_error()
    if error != _ALREADY_EXISTS or not path.is_dir():
        raise ctypes.WinError(error)


def set_rights(name: str, text: str, kind: int = FILE) -> None:
    """Replace the rights of something that exists, and what it inherits; its owner too if given."""
    ctypes: Any = import_module("ctypes")
    security = _advapi()
    with _descriptor(text) as descriptor:
        dacl, owner = ctypes.c_void_p(), ctypes.c_void_p()
        present, default = ctypes.c_int(), ctypes.c_int()
        by = ctypes.byref
        security.GetSecurityDescriptorDacl(descriptor, by(present), by(dacl), by(default))
        security.GetSecurityDescriptorOwner(descriptor, by(owner), by(default))
        what = _DACL | _PROTECTED_DACL | (_OWNER if owner else 0)
        _refused(security.SetNamedSecurityInfoW(name, kind, what, owner, None, dacl, None))


def rights_of(name: str, kind: int = FILE) -> str:
    """The owner and the rights of something, as SDDL."""
    ctypes: Any = import_module("ctypes")
    security = _advapi()
    descriptor, text = ctypes.c_void_p(), ctypes.c_void_p()
    what = _OWNER | _DACL
    _refused(
        security.GetNamedSecurityInfoW(
            name, kind, what, None, None, None, None, ctypes.byref(descriptor)
        )
    )
    try:
        _true(
            security.ConvertSecurityDescriptorToStringSecurityDescriptorW(
                descriptor, 1, what, ctypes.byref(text), None
            )
        )
        return _text(text)
    finally:
        _free(descriptor)


def owner_of(path: Path) -> str:
    """The SID of the owner, or its two letters in SDDL."""
    found = re.match(r"O:(S-[\d-]+|[A-Z]{2})", rights_of(str(path)))
    return found[1] if found else ""


def user_sid() -> str:
    """The SID of the user who runs this process."""
    ctypes: Any = import_module("ctypes")
    kernel, security = ctypes.WinDLL("kernel32", use_last_error=True), _advapi()
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    token, size, text = ctypes.c_void_p(), ctypes.c_uint32(), ctypes.c_void_p()
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    _true(security.OpenProcessToken(process, _TOKEN_QUERY, ctypes.byref(token)))
    try:
        buffer = ctypes.create_string_buffer(256)
        _true(
            security.GetTokenInformation(
                token, _TOKEN_USER, buffer, len(buffer), ctypes.byref(size)
            )
        )
        sid = ctypes.c_void_p.from_buffer(buffer)
        _true(security.ConvertSidToStringSidW(sid, ctypes.byref(text)))
        return _text(text)
    finally:
        kernel.CloseHandle(token)


def group_sid(name: str) -> str:
    """The SID of a group of this machine or its domain; raises ValueError if there is none."""
    ctypes: Any = import_module("ctypes")
    security = _advapi()
    sid, domain = ctypes.create_string_buffer(256), ctypes.create_unicode_buffer(256)
    sizes = ctypes.c_uint32(len(sid)), ctypes.c_uint32(len(domain))
    use, text, by = ctypes.c_int(), ctypes.c_void_p(), ctypes.byref
    found = security.LookupAccountNameW(
        None, name, sid, by(sizes[0]), domain, by(sizes[1]), by(use)
    )
    if not found or use.value not in _GROUPS:
        raise ValueError(f"there is no group {name!r} on this machine")
    _true(security.ConvertSidToStringSidW(sid, by(text)))
    return _text(text)


@contextmanager
def _descriptor(text: str) -> Generator[Any]:
    ctypes: Any = import_module("ctypes")
    made = ctypes.c_void_p()
    _true(
        _advapi().ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text, 1, ctypes.byref(made), None
        )
    )
    try:
        yield made
    finally:
        _free(made)


def _advapi() -> Any:
    ctypes: Any = import_module("ctypes")
    library = ctypes.WinDLL("advapi32", use_last_error=True)
    library.LookupAccountNameW.argtypes = [
        ctypes.c_wchar_p,
        ctypes.c_wchar_p,
        *[ctypes.c_void_p] * 5,
    ]
    library.SetNamedSecurityInfoW.argtypes = [
        ctypes.c_wchar_p, ctypes.c_int, ctypes.c_uint32, *[ctypes.c_void_p] * 4,
    ]  # fmt: skip
    return library


def _text(address: Any) -> str:
    ctypes: Any = import_module("ctypes")
    try:
        return str(ctypes.wstring_at(address))
    finally:
        _free(address)


def _free(address: Any) -> None:
    ctypes: Any = import_module("ctypes")
    ctypes.WinDLL("kernel32").LocalFree(address)


def _true(done: object) -> None:
    ctypes: Any = import_module("ctypes")
    if not done:
        raise ctypes.WinError(ctypes.get_last_error())


def _refused(code: int) -> None:
    ctypes: Any = import_module("ctypes")
    if code:
        raise ctypes.WinError(code)
