"""The container image, as an OCI archive with the same bytes each time."""

import io
import tarfile
from pathlib import Path

from release.facts import ROOT, epoch, run


def archive(target: Path, *, version: str) -> Path:
    """Build the image and save it. Equal bytes need podman or buildah, which can set times."""
    made = target.with_suffix(".made")
    env = {"IMAGE_ARCHIVE": str(made), "IMAGE_VERSION": version, "SOURCE_DATE_EPOCH": str(epoch())}
    run(ROOT / "scripts" / "image", env=env)
    _settle(made, target)
    made.unlink()
    return target


def _settle(made: Path, target: Path) -> None:
    """Copy the archive with sorted names and one time; builders write the times of their work."""
    with tarfile.open(made) as source, tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as out:
        for member in sorted(source.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid = epoch(), 0, 0
            member.uname = member.gname = ""
            file = source.extractfile(member)
            out.addfile(member, file if file is not None else io.BytesIO())
