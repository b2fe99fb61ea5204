"""What the packages are made of. `make test-packages` installs them in roots of Debian."""

import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from bridge.cli import COMMANDS
from bridge.config import load
from release import archive, bundle, facts, manpage, packages, sbom

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "package"
SCRIPTS = ("postinst", "prerm", "postrm")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_maintainer_script_is_valid_and_stops_at_errors(name):
    text = (FOLDER / name).read_text()
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -e\n" in text
    done = subprocess.run(["sh", "-n", FOLDER / name], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_journal_goes_only_with_a_purge():
    removal = (FOLDER / "postrm").read_text()
    assert removal.count("/var/lib/scheduled-events-bridge") == 1
    assert removal.index("= purge ]") < removal.index("/var/lib/scheduled-events-bridge")
    assert "/var/lib" not in (FOLDER / "prerm").read_text()


def test_the_default_configuration_is_valid_and_may_write_under_the_unit():
    config = load(FOLDER / "config.yaml", {})
    unit = (ROOT / "deploy" / "systemd" / "scheduled-events-bridge.service").read_text()
    [logs] = re.findall(r"(?m)^LogsDirectory=(.*)", unit)
    assert str(config.sinks["local-file"].path).startswith(f"/var/log/{logs}/")  # type: ignore[attr-defined]  # of the file sink


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_the_description_of_a_package_names_files_that_exist(kind, tmp_path):
    values = {
        "VERSION": "1", "MOMENT": "2026-01-01T00:00:00Z", "STAGE": "stage", "ROOT": str(ROOT),
        "UNITS": packages.UNITS[kind], "MAINTAINER": packages.MAINTAINER,
    }  # fmt: skip
    text = (FOLDER / "nfpm.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", text)) == set(values)
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    described = yaml.safe_load(text)
    sources = [one["src"] for one in described["contents"] if str(ROOT) in one.get("src", "")]
    for path in (*sources, *described["scripts"].values()):
        assert Path(path).is_file(), path
    [config] = [one for one in described["contents"] if str(one.get("type")).startswith("config")]
    assert config["dst"] == "/etc/scheduled-events-bridge/config.yaml"
    assert "python" not in str(described["overrides"]).lower()


def test_every_override_of_lintian_has_its_reason():
    lines = (FOLDER / "lintian-overrides").read_text().splitlines()
    assert lines[0].startswith("# ")
    assert all(re.match(r"# \S|scheduled-events-bridge: [a-z-]+$", line) for line in lines)


def test_the_manual_names_every_command_and_its_options():
    page = manpage.page(version="1.2.3", epoch=0)
    assert '.TH SEB 1 "1970-01-01" "scheduled-events-bridge 1.2.3"' in page
    for command in COMMANDS:
        assert manpage._escaped(f"seb {command}") in page
    assert ".B \\-\\-scenario" in page
    assert "%(" not in page
    assert "@" not in page.replace("\\-", "")


def test_the_launcher_is_a_valid_script():
    done = subprocess.run(
        ["sh", "-n"], check=False, input=bundle.LAUNCHER, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_standalone_cpython_is_taken_from_its_archive_without_what_no_bridge_needs(tmp_path):
    build = tmp_path / "build" / "python"
    library = build / "lib" / "python3.13"
    for name in ("os.py", "test/x.py", "site-packages/pip/y.py", "lib-dynload/_tkinter.a.so"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).touch()
    (build / "lib" / "tcl8.6").mkdir()
    (build / "bin").mkdir()
    for name in ("python3.13", "pip3", "idle3"):
        (build / "bin" / name).touch()
    (build / "bin" / "python3").symlink_to("python3.13")
    with tarfile.open(tmp_path / "cpython.tar.gz", "w:gz") as packed:
        packed.add(build, "python")
    (tmp_path / "bundle").mkdir()
    target = tmp_path / "bundle" / "python"
    bundle._copy_python(tmp_path / "cpython.tar.gz", target)
    bundle._prune(target)
    left = {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}
    assert left == {"bin/python3", "bin/python3.13", "lib/python3.13/os.py"}
    assert bundle._interpreter(target).resolve().name == "python3.13"


def test_packages_and_image_bring_the_same_extras():
    [extras] = re.findall(r"\.whl\)\[([a-z0-9,]+)\]", (ROOT / "Dockerfile").read_text())
    assert tuple(extras.split(",")) == facts.EXTRAS


def test_an_archive_is_the_same_whoever_packs_it(tmp_path):
    made = []
    for number, mode in enumerate((0o600, 0o644)):
        folder = tmp_path / f"{number}"
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "seb").write_text("run")
        (folder / "bin" / "seb").chmod(0o700)
        (folder / "text").write_text("same")
        (folder / "text").chmod(mode)
        (folder / "link").symlink_to("text")
        target = tmp_path / f"{number}.tar.gz"
        made.append(archive.pack(folder, target, prefix="seb-1", epoch=1_700_000_000))
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as packed:
        modes = {member.name: member.mode for member in packed if member.isfile()}
    assert modes == {"seb-1/bin/seb": 0o755, "seb-1/text": 0o644}


def test_a_zip_has_the_same_bytes_whenever_it_is_made(tmp_path):
    made = []
    for number in (1, 2):
        folder = tmp_path / f"{number}"
        (folder / "python").mkdir(parents=True)
        (folder / "python" / "python.exe").write_bytes(b"MZ")
        (folder / "seb.cmd").write_text("run")
        os.utime(folder / "seb.cmd", (number * 1_000_000, number * 1_000_000))
        target = tmp_path / f"{number}.zip"
        made.append(archive.pack_zip(folder, target, prefix="seb", epoch=1_700_000_000))
    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as packed:
        assert packed.namelist() == ["seb/python/python.exe", "seb/seb.cmd"]


def test_a_library_in_the_sbom_has_its_version_and_license(tmp_path):
    folder = tmp_path / "some_lib-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: Some_Lib\nVersion: 1.2\nLicense-Expression: MIT\n")
    (folder / "RECORD").write_text("some/x.py,sha256=abc,3\nsome/RECORD,,\n")
    found = sbom._library(folder)
    assert found["purl"] == "pkg:pypi/some-lib@1.2"
    assert found["licenses"] == [{"expression": "MIT"}]


def test_what_a_wheel_brought_and_pip_removed_is_not_listed(tmp_path):
    (tmp_path / "kept.py").touch()
    record = tmp_path / "RECORD"
    record.write_text("kept.py,sha256=a,0\n../../bin/tool,sha256=b,9\n")
    bundle._correct_record(tmp_path, record)
    assert record.read_text() == "kept.py,sha256=a,0\n"


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"docker", "podman", "buildah"}, "docker build"),
        ({"podman", "buildah"}, "podman build"),
        ({"buildah"}, "buildah bud"),
    ],
)
def test_the_image_is_built_by_whatever_is_there(tmp_path, there, chosen):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in there:
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (tools / name).chmod(0o755)
    for name in ("dirname", "sh"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        [ROOT / "scripts" / "image"], check=True, capture_output=True, text=True,
        env={"PATH": str(tools), "BASE": "python@sha256:abc", "SOURCE_DATE_EPOCH": "7"},
    )  # fmt: skip
    assert done.stdout.startswith(chosen)
    assert "--build-arg BASE=python@sha256:abc" in done.stdout
    assert ("--timestamp 7" in done.stdout) is not chosen.startswith("docker")


def test_without_a_builder_the_message_says_what_is_needed(tmp_path):
    for name in ("dirname", "sh"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    command = [str(ROOT / "scripts" / "image")]
    env = {"PATH": str(tmp_path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    assert (done.returncode, "docker" in done.stderr) == (1, True)
