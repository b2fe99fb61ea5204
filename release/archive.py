"""A .tar.gz of a folder that is the same whoever makes it, and whenever."""

import gzip
import tarfile
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
