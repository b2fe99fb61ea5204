"""The bridge with a CPython of its own in one folder that runs wherever you put it.

bin/seb                  the command, for any place of the folder
python/                  CPython without what no bridge needs
python/lib/…/site-packages
"""

import csv
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from release.facts import EXTRAS, ROOT, run

PLACE = "/opt/scheduled-events-bridge"
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 24, 17)] + ["manylinux2014_x86_64"]
"""Wheels for the oldest glibc among the distributions in support."""
UNUSED = (
    "test", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip", "distutils",
    "pydoc_data", "config-*", "site-packages/pip*", "site-packages/setuptools*",
    "site-packages/_distutils_hack", "site-packages/distutils-precedence.pth",
    "site-packages/wheel*",
    "site-packages/pkg_resources", "site-packages/README.txt", "unittest",
    "cgi.py", "cgitb.py", "wsgiref", "xmlrpc", "venv",
)  # fmt: skip
UNUSED_EXTENSIONS = (
    "_ctypes_test", "_test*", "_xx*", "xx*", "_dbm", "_gdbm", "_crypt", "nis", "ossaudiodev",
    "_tkinter", "_curses*", "readline", "_codecs_cn", "_codecs_hk", "_codecs_jp", "_codecs_kr",
    "_codecs_tw", "_codecs_iso2022", "audioop", "spwd",
)  # fmt: skip
LAUNCHER = """#!/bin/sh
# Run the bridge with the Python that comes with it, wherever this folder is.
here="$(dirname "$(readlink -f "$0")")"
# OpenSSL looks for certificate authorities where it was built; each distribution has its own place.
if [ -z "${SSL_CERT_FILE:-}${SSL_CERT_DIR:-}" ]; then
    for bundle in \\
        /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem
    do
        if [ -r "$bundle" ]; then
            export SSL_CERT_FILE="$bundle"
            break
        fi
    done
fi
exec "$here/../python/bin/python3" -I -c \\
    'import sys; from bridge.cli import main; sys.exit(main())' "$@"
"""


def make(python: Path, wheel: Path, target: Path) -> Path:
    """Put *python*, a folder or an archive of one, and the wheel with its libraries together."""
    shutil.rmtree(target, ignore_errors=True)
    _copy_python(python, target / "python")
    interpreter = _interpreter(target / "python")
    site = _library(target / "python") / "site-packages"
    _prune(target / "python")
    _install(interpreter, wheel, site)
    _write_launcher(target / "bin")
    shutil.copy(ROOT / "LICENSE", target / "LICENSE")
    _compile(interpreter, target)
    return target


def _copy_python(python: Path, target: Path) -> None:
    if python.is_dir():
        shutil.copytree(python, target, symlinks=True)
        return
    with tempfile.TemporaryDirectory(dir=target.parent.parent) as made:
        with tarfile.open(python) as packed:
            packed.extractall(made, filter="tar")
        [found] = [path.parent.parent for path in Path(made).rglob("bin/python3")]
        shutil.move(found, target)


def _interpreter(python: Path) -> Path:
    found = python / "bin" / "python3"
    if not found.exists():
        raise SystemExit(f"{python} has no bin/python3: name a folder or an archive with CPython")
    return found


def _library(python: Path) -> Path:
    [found] = (python / "lib").glob("python3.*[0-9]")
    return found


def _prune(python: Path) -> None:
    library = _library(python)
    for path in _unused(python, library):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    interpreter = python / "bin" / library.name
    (python / "bin" / "python3").unlink()
    (python / "bin" / "python3").symlink_to(interpreter.name)


def _unused(python: Path, library: Path) -> Iterator[Path]:
    for pattern in UNUSED:
        yield from list(library.glob(pattern))
    for pattern in UNUSED_EXTENSIONS:
        yield from list((library / "lib-dynload").glob(f"{pattern}.*.so"))
    yield from list(library.rglob("__pycache__"))
    yield from list((python / "lib").rglob("*.a"))
    for pattern in ("tcl*", "tk*", "itcl*", "thread*", "libtcl*", "libtk*"):
        yield from list((python / "lib").glob(pattern))
    for name in ("include", "share", "lib/pkgconfig", "lib/ossl-modules", "lib/engines-3"):
        if (python / name).exists():
            yield python / name
    for program in list((python / "bin").iterdir()):
        if program.name not in {"python3", library.name}:
            yield program


def _install(interpreter: Path, wheel: Path, site: Path) -> None:
    """Install the pinned libraries for the bundle's interpreter, not for the one that runs this."""
    number = run(interpreter, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--no-compile", "--only-binary=:all:", "--implementation", "cp", "--python-version",
        number.strip(), *platforms, "--constraint", ROOT / "constraints.txt", "--target", site,
        f"{wheel}[{','.join(EXTRAS)}]",
    )  # fmt: skip
    shutil.rmtree(site / "bin", ignore_errors=True)
    for page in site.glob("*.md"):
        page.unlink()
    for folder in site.glob("*.dist-info"):
        for name in ("direct_url.json", "REQUESTED", "INSTALLER"):
            (folder / name).unlink(missing_ok=True)
        _correct_record(site, folder / "RECORD")


def _correct_record(site: Path, record: Path) -> None:
    """List the files that are there: scripts and what only pip needs are gone."""
    with record.open(newline="") as file:
        rows = [row for row in csv.reader(file) if (site / row[0]).exists()]
    with record.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(sorted(rows))


def _write_launcher(folder: Path) -> None:
    folder.mkdir()
    (folder / "seb").write_text(LAUNCHER)
    (folder / "seb").chmod(0o755)
    (folder / "scheduled-events-bridge").symlink_to("seb")


def _compile(interpreter: Path, target: Path) -> None:
    """Compile everything now: the folder is not writable for the bridge's user."""
    run(
        interpreter, "-I", "-m", "compileall", "-q", "-f", "-j", "1", "--invalidation-mode",
        "unchecked-hash", "-s", target, "-p", PLACE, _library(target / "python"),
        env={"PYTHONHASHSEED": "0"},
    )  # fmt: skip
