"""Build a release into a folder: `python -m release --python CPYTHON [--out dist]`."""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from release import archive, bundle, image, packages, sbom
from release.facts import NAME, ROOT, epoch, run, version


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options().parse_args(arguments)
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch())
    os.umask(0o022)
    out: Path = given.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="release-") as made:
        build(given, out, Path(made))
    sums(out)
    return 0


def _options() -> argparse.ArgumentParser:
    every = "wheel,tar,deb,rpm,zip,sbom,image"
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument(
        "--python", type=Path, required=True, help="a folder or archive with a relocatable CPython"
    )
    parser.add_argument(
        "--windows-python",
        type=Path,
        help="a folder with a CPython for Windows; default: a stand-in",
    )
    parser.add_argument("--out", type=Path, default=Path("dist"), help="default: dist")
    parser.add_argument("--only", default=every, help=f"some of {every}")
    return parser


def build(given: argparse.Namespace, out: Path, work: Path) -> None:
    """Make what is wanted, and say how long each took."""
    number, began, wanted = version(), time.monotonic(), set(given.only.split(","))

    def done(what: object) -> None:
        nonlocal began
        now = time.monotonic()
        print(f"{now - began:6.1f} s  {what}", file=sys.stderr)
        began = now

    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    [wheel] = out.glob("*.whl")
    done("wheel and sdist")
    if wanted & {"tar", "deb", "rpm", "sbom"}:
        made = bundle.make(given.python, wheel, work / "bundle")
        done("bundle")
    if "tar" in wanted:
        name = f"{NAME}-{number}-linux-x86_64"
        done(archive.pack(made, out / f"{name}.tar.gz", prefix=name, epoch=epoch()).name)
    if wanted & {"deb", "rpm"}:
        staged = packages.stage(made, work / "stage", version=number)
        for kind in sorted(wanted & {"deb", "rpm"}):
            done(packages.make(kind, staged, out, version=number).name)
    if "zip" in wanted:
        name = f"{NAME}-{number}-windows-x86_64"
        inside = given.windows_python or run(ROOT / "scripts" / "stand-in-windows-python").strip()
        build_with = {"BUILD_PYTHON": sys.executable}
        run(ROOT / "scripts" / "windows-zip", inside, work / name, env=build_with)
        zipped = out / f"{name}.zip"
        done(archive.pack_zip(work / name, zipped, prefix=NAME, epoch=epoch()).name)
    if "sbom" in wanted:
        done(sbom.write(made, out / f"{NAME}-{number}.cdx.json", version=number).name)
    if "image" in wanted:
        done(image.archive(out / f"{NAME}-{number}-image.tar", version=number).name)


def sums(out: Path) -> None:
    """SHA256SUMS of all files, as `sha256sum -c` reads it."""
    lines = []
    for path in sorted(out.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (out / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    sys.exit(main())
