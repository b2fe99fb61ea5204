"""The .deb and the .rpm, written by nfpm from one description."""

import gzip
import os
import shutil
import string
import subprocess
from pathlib import Path

from release import manpage
from release.facts import NAME, ROOT, epoch, moment, run

COMPLETIONS = {
    "bash": "bash-completion/completions/seb",
    "zsh": "zsh/vendor-completions/_seb",
    "fish": "fish/vendor_completions.d/seb.fish",
}
MAINTAINER = f"{NAME} <nobody@localhost>"
"""Who packaged it, unless the variable MAINTAINER names somebody."""
UNITS = {"deb": "/lib/systemd/system", "rpm": "/usr/lib/systemd/system"}
"""Debian bullseye does not read units elsewhere, and later ones have /lib as a link to /usr/lib."""


def stage(bundle: Path, folder: Path, *, version: str) -> Path:
    """What the packages hold, as it lies on a machine."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "opt").mkdir(parents=True)
    shutil.copytree(bundle, folder / "opt" / NAME, symlinks=True)
    share = folder / "usr" / "share"
    manpage.write(share / "man" / "man1" / "seb.1.gz", version=version, epoch=epoch())
    (share / "man" / "man1" / f"{NAME}.1.gz").symlink_to("seb.1.gz")
    _completions(bundle, share)
    documents = share / "doc" / NAME
    documents.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "package" / "copyright", documents)
    changes = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
    (documents / "CHANGELOG.md.gz").write_bytes(changes)
    overrides = share / "lintian" / "overrides" / NAME
    overrides.parent.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "package" / "lintian-overrides", overrides)
    _settle_modes(folder)
    return folder


def _completions(bundle: Path, share: Path) -> None:
    """Completion for each shell, as the command prints it."""
    for shell, place in COMPLETIONS.items():
        command = [str(bundle / "bin" / "seb"), "completion", shell]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        (share / place).parent.mkdir(parents=True)
        (share / place).write_text(done.stdout)


def _settle_modes(folder: Path) -> None:
    """The same modes whatever the umask."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)


def make(kind: str, staged: Path, target: Path, *, version: str) -> Path:
    """Write one package; *kind* is deb or rpm."""
    frame = (ROOT / "deploy" / "package" / "nfpm.yaml").read_text("utf-8")
    values = {
        "VERSION": version,
        "MOMENT": moment(),
        "STAGE": staged,
        "ROOT": ROOT,
        "MAINTAINER": os.environ.get("MAINTAINER") or MAINTAINER,
    }
    config = staged.parent / f"nfpm-{kind}.yaml"
    config.write_text(string.Template(frame).substitute(values, UNITS=UNITS[kind]))
    nfpm = run(ROOT / "scripts" / "go-tool", "nfpm").strip()
    before = set(target.iterdir())
    env = {"SOURCE_DATE_EPOCH": str(epoch())}
    run(nfpm, "package", "-f", config, "-p", kind, "-t", target, env=env)
    [made] = set(target.iterdir()) - before
    return made
