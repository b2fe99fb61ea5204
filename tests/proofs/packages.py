"""The .deb in roots of Debian without Python: installed, used, upgraded, downgraded, removed, purged.

The later version in this proof is this one with another number, another default configuration and a
journal that this one cannot read. DEB and LATER name packages that are there already.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from proofs.roots import ROOT, USER, Machine, cloudevents, command, epoch, kinds, snapshot, wait
from support.ports import free_ports

SUITES = ("bullseye", "bookworm", "trixie")
CONFIG = "/etc/scheduled-events-bridge/config.yaml"
EVENTS = "/var/log/scheduled-events-bridge/events.jsonl"
STATE = "/var/lib/scheduled-events-bridge"
LATER_VERSION = "0.9.0"
PYTHON = "python3,python3-venv,python3-pip,ca-certificates"


def main() -> None:
    suites = tuple((os.environ.get("SUITES") or " ".join(SUITES)).split())
    with tempfile.TemporaryDirectory(prefix="proof-") as made:
        folder = Path(made)
        now, later = packages(folder)
        inspect_rpm(folder)
        judge(now)
        for suite in suites:
            prove(Machine(suite, folder / suite), now, later)
        [wheel] = now.parent.glob("*.whl")
        prove_wheel(Machine("trixie", folder / "wheel", PYTHON), wheel)


def packages(folder: Path) -> tuple[Path, Path]:
    """This version and a later one."""
    given = os.environ.get("DEB"), os.environ.get("LATER")
    if given[0] and given[1]:
        return Path(given[0]), Path(given[1])
    now = release(ROOT, folder / "now", "deb,rpm")
    tree = folder / "tree"
    snapshot(tree)
    make_later(tree)
    return now, release(tree, folder / "later", "deb")


def release(tree: Path, out: Path, only: str) -> Path:
    python = command(ROOT / "scripts" / "stand-in-python").strip()
    env = {**os.environ, "PYTHONPATH": str(tree), "SOURCE_DATE_EPOCH": epoch()}
    words = (sys.executable, "-m", "release", "--python", python, "--out", out, "--only", only)
    command(*words, env=env, cwd=tree)
    [deb] = out.glob("*.deb")
    return deb


def make_later(tree: Path) -> None:
    """A journal with one more step, a new number, and another default configuration."""
    edit(tree / "pyproject.toml", r'(?m)^version = ".*"', f'version = "{LATER_VERSION}"')
    schema = tree / "bridge" / "journal" / "schema.py"
    [number] = re.findall(r"(?m)^VERSION = (\d+)", schema.read_text())
    later = int(number) + 1
    edit(schema, r"(?m)^VERSION = \d+", f"VERSION = {later}")
    edit(schema, r"_MIGRATIONS = \{", f'_MIGRATIONS = {{\n    {later}: "CREATE TABLE later(x);",')
    edit(tree / "deploy" / "package" / "config.yaml", r"\Z", "\n# A later version.\n")


def edit(path: Path, pattern: str, by: str) -> None:
    path.write_text(re.sub(pattern, lambda _: by, path.read_text(), count=1))


def judge(deb: Path) -> None:
    """Lintian, Debian's own judge, finds no error that is not explained."""
    command(ROOT / "scripts" / "debian-packages", "lintian")
    found = command("lintian", "--allow-root", "--fail-on", "error", deb)
    print(f"  lintian: {len(found.splitlines())} remarks, no unexplained error", flush=True)


def inspect_rpm(folder: Path) -> None:
    """What rpm itself reads in the package."""
    for rpm in (folder / "now").glob("*.rpm"):
        command(ROOT / "scripts" / "debian-packages", "rpm")
        command("rpm", "-K", "--nosignature", rpm)
        assert command("rpm", "-qcp", rpm).split() == [CONFIG]
        listed = command("rpm", "-qlp", rpm).split("\n")
        for name in ("/usr/bin/seb", "/usr/lib/systemd/system/scheduled-events-bridge.service"):
            assert name in listed, name
        needs = command("rpm", "-qRp", rpm)
        assert "glibc >= 2.28" in needs
        assert "python" not in needs.lower()
        assert "useradd" in command("rpm", "-qp", "--scripts", rpm)
        print(
            f"  rpm: {len(listed)} files, needs {', '.join(needs.split(chr(10))[:3])}", flush=True
        )


def prove(at: Machine, now: Path, later: Path) -> None:
    print(f"{at.suite}:", flush=True)
    assert at.run("sh", "-c", "command -v python3 python")[0] != 0, "there is no Python here"
    at.install(now)
    at.step(f"dpkg -i {now.name} ({now.stat().st_size / 1e6:.0f} MB)")
    assert at.must("seb", "--version").strip() == number(now)
    installed(at)
    [port] = free_ports(1)
    configure(at, port)
    at.step("configuration of five lines, checked: " + at.must("seb", "check").split("\n")[0])
    with at.running("seb", "simulate", "--port", port, "--scenario", "reboot", "--vm-name", "vm-0"):
        first_day(at)
        next_version(at, later)
        version_before(at, now)
    gone(at)


def prove_wheel(at: Machine, wheel: Path) -> None:
    """The same with the Python of the distribution; the libraries are beside the wheel."""
    print("the wheel:", flush=True)
    wheels = at.root / "tmp" / "wheels"
    what = f"{wheel}[kafka,mqtt]"
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:")
    target = ("--python-version", "3.13", "--platform", "manylinux_2_28_x86_64")
    older = ("--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64")
    pins = ("--constraint", ROOT / "constraints.txt", "--dest", wheels)
    command(*pip, *target, *older, *pins, what)
    at.step("libraries downloaded outside of the root")
    at.must("python3", "-m", "venv", "/opt/bridge")
    local = ("--quiet", "--no-index", "--find-links", "/tmp/wheels")
    at.must("pip", "install", *local, f"/tmp/wheels/{wheel.name}[kafka,mqtt]")
    at.step(f"pip install {wheel.name}")
    at.must("useradd", "--system", "--user-group", USER)
    at.path("/etc/scheduled-events-bridge").mkdir()
    directories(at)
    [port] = free_ports(1)
    configure(at, port)
    at.step("configuration of five lines, checked: " + at.must("seb", "check").split("\n")[0])
    with at.running("seb", "simulate", "--port", port, "--scenario", "reboot", "--vm-name", "vm-0"):
        first_day(at)


def number(deb: Path) -> str:
    return deb.name.split("_")[1]


def installed(at: Machine) -> None:
    assert at.must("stat", "-c", "%a %U %G", CONFIG).split() == ["640", "root", USER]
    assert at.path("/lib/systemd/system/scheduled-events-bridge.service").exists()
    assert at.path("/usr/share/man/man1/seb.1.gz").exists()
    directories(at)


def directories(at: Machine) -> None:
    """What systemd makes before it starts the service."""
    for name in ("lib", "log"):
        at.must("install", "-d", "-o", USER, "-g", USER, "-m", "700", f"/var/{name}/{USER}")


def configure(at: Machine, port: int, *more: str) -> None:
    """Five lines, and those that a later step needs."""
    lines = (
        f"source: {{endpoint: 'http://127.0.0.1:{port}', poll_interval: 200ms}}",
        "sinks:",
        f"  events: {{type: file, path: {EVENTS}}}",
        f"  behind: {{type: file, path: {STATE}/blocked/behind.jsonl}}",
        "http: {listen: null}",
        *more,
    )
    at.path(f"{STATE}/blocked").write_text("")
    at.path(CONFIG).write_text("".join(f"{line}\n" for line in lines))


def first_day(at: Machine) -> None:
    """An event and its approval; the sink `behind` gets nothing."""
    with at.running("seb", "run") as log:
        found = wait(
            lambda: [one for one in events(at) if one["type"].endswith(".scheduled.v1")],
            "the event",
            log.read_text,
        )
        at.step("seb run: the event is delivered")
        code, told = at.run("seb", "approve", found[0]["subject"], user=USER)
        assert code == 0, told
        wait(lambda: "approval.granted.v1" in kinds(at.path(EVENTS)), "the grant", log.read_text)
        at.step("seb approve: " + told.strip().split("\n")[-1])
        wait(lambda: "started.v1" in kinds(at.path(EVENTS)), "the start", log.read_text)


def events(at: Machine) -> list[dict[str, Any]]:
    return cloudevents(at.path(EVENTS))


def next_version(at: Machine, later: Path) -> None:
    """The configuration stays, and what was not delivered is delivered by the new version."""
    before = at.path(CONFIG).read_text()
    at.install(later)
    at.step(f"upgrade to {number(later)}")
    assert at.path(CONFIG).read_text() == before
    assert at.path(f"{CONFIG}.dpkg-dist").exists()
    assert at.must("seb", "--version").strip() == number(later)
    at.path(f"{STATE}/blocked").unlink()
    behind = at.path(f"{STATE}/blocked/behind.jsonl")
    with at.running("seb", "run") as log:
        wait(lambda: "approval.granted.v1" in kinds(behind), "old CloudEvents", log.read_text)
    told = [one["id"] for one in cloudevents(behind)]
    missing = {one["id"] for one in events(at)} - set(told)
    assert len(told) == len(set(told))
    assert not [one for one in events(at)[:4] if one["id"] in missing]
    at.step("the new version delivers what the old one could not")


def version_before(at: Machine, now: Path) -> None:
    """It does not touch the newer journal, until it is told to set it aside."""
    at.install(now)
    at.step(f"downgrade to {number(now)}")
    journal = at.path(f"{STATE}/journal.db")
    before = journal.read_bytes()
    code, told = at.run("seb", "run", "--once", user=USER)
    assert (code, "newer version of the bridge" in told) == (1, True), told
    assert journal.read_bytes() == before
    config = at.path(CONFIG)
    config.write_text(config.read_text() + "journal: {newer: set-aside}\n")
    at.must("seb", "run", "--once", user=USER)
    [kept] = [p for p in journal.parent.glob("journal.db.newer-*") if not p.name.endswith("-wal")]
    assert kept.read_bytes() == before
    at.step("refuses the newer journal, then sets it aside and continues")


def gone(at: Machine) -> None:
    at.must("dpkg", "-r", USER)
    assert not at.path("/usr/bin/seb").exists()
    assert not at.path("/opt/scheduled-events-bridge").exists()
    assert at.path(f"{STATE}/journal.db").exists()
    assert at.path(CONFIG).exists()
    at.step("removed: the journal and the configuration are there")
    at.must("dpkg", "-P", USER)
    for name in (STATE, "/etc/scheduled-events-bridge", "/var/log/scheduled-events-bridge"):
        assert not at.path(name).exists(), name
    assert at.run("getent", "passwd", USER)[0] != 0
    at.step("purged: nothing is left")
