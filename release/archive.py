"""Archives of a folder that are the same whoever makes them, and whenever."""

import gzip
import tarfile
import time
import zipfile
from pathlib import Path


def pack(folder: Path, target: Path, *, prefix: str, epoch: int) -> Path:
    """Pack *folder* under the name *prefix*: sorted, owned by root, all of one time."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        tar.add(folder, prefix, recursive=False, filter=plain)
        for path in sorted(folder.rglob("*"), key=lambda each: each.relative_to(folder).parts):
            name = f"{prefix}/{path.relative_to(folder)}"
            tar.add(path, name, recursive=False, filter=plain)
    return target


def pack_zip(folder: Path, target: Path, *, prefix: str, epoch: int) -> Path:
    """The files of *folder* as a .zip under the name *prefix*: sorted, all of one time."""
    moment = time.gmtime(epoch)[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*"), key=lambda each: each.relative_to(folder).parts):
            if path.is_file():
                name = f"{prefix}/{path.relative_to(folder).as_posix()}"
                member = zipfile.ZipInfo(name, moment)
                member.external_attr = 0o644 << 16
                packed.writestr(member, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
