"""The container image, as an OCI archive."""

from pathlib import Path

from release.facts import ROOT, epoch, run


def archive(target: Path, *, version: str) -> Path:
    """Build the image, and save it; the program that builds it must be buildah for equal bytes."""
    env = {"IMAGE_ARCHIVE": str(target), "IMAGE_VERSION": version, "SOURCE_DATE_EPOCH": str(epoch())}
    run(ROOT / "scripts" / "image", env=env)
    return target
