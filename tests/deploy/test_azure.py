"""Cloud-init, Terraform and Bicep: one configuration, the same names, no secret."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.config import load

FOLDER = Path(__file__).parents[2] / "deploy" / "azure"
CLOUD_INIT = FOLDER / "cloud-init.yaml"
TERRAFORM = FOLDER / "terraform" / "main.tf"
BICEP = FOLDER / "bicep" / "main.bicep"
PLACEHOLDER = re.compile(r"\{\{[A-Z0-9_]+\}\}")
USED = sorted(set(PLACEHOLDER.findall(CLOUD_INIT.read_text().split("write_files:")[1])))
SECRET = re.compile(r"(?i)connection_?string|shared_?access|admin_?password|client_?secret|\bsas\b")


@pytest.fixture
def cloud_init() -> dict[str, Any]:
    text = PLACEHOLDER.sub("filled-in", CLOUD_INIT.read_text())
    assert text.startswith("#cloud-config\n")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_cloud_init_writes_a_configuration_that_the_bridge_reads(cloud_init, tmp_path):
    [file] = cloud_init["write_files"]
    path = tmp_path / "config.yaml"
    path.write_text(file["content"])
    config = load(path, {})
    assert config.sinks["hub"].sasl.mechanism == "OAUTHBEARER"  # type: ignore[attr-defined]  # of the kafka sink
    assert (file["path"], file["permissions"]) == (
        "/etc/scheduled-events-bridge/config.yaml",
        "0640",
    )


def test_cloud_init_checks_what_it_installs(cloud_init):
    fetch, install = cloud_init["runcmd"]
    assert "--fail" in fetch
    assert install[2].index("sha256sum --check &&") < install[2].index("dpkg")
    assert "--force-confold" in install[2], "the configuration is there before the package"
    done = subprocess.run(["sh", "-n", "-c", install[2]], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [TERRAFORM, BICEP], ids=["terraform", "bicep"])
def test_both_fill_in_every_name(path):
    assert sorted(set(PLACEHOLDER.findall(path.read_text()))) == USED


@pytest.mark.parametrize("path", [TERRAFORM, BICEP], ids=["terraform", "bicep"])
def test_both_create_the_hubs_that_the_configuration_names(path):
    text = path.read_text()
    for topic in ("scheduled-events", "scheduled-events-approvals"):
        assert re.search(rf"topic: {topic}\b", CLOUD_INIT.read_text())
        assert re.search(rf"name\W+['\"]{topic}['\"]", text), topic


@pytest.mark.parametrize("path", [CLOUD_INIT, TERRAFORM, BICEP], ids=lambda path: path.suffix)
def test_no_secret_is_anywhere(path):
    assert SECRET.findall(path.read_text()) == []


def test_only_the_identity_can_log_in_at_event_hubs():
    assert re.search(r"local_authentication_enabled\s+= false", TERRAFORM.read_text())
    assert "disableLocalAuth: true" in BICEP.read_text()


def test_terraform_finds_its_files_formatted():
    if shutil.which("terraform") is None:
        pytest.skip("there is no terraform here")
    command = ["terraform", "fmt", "-check", "-diff", str(TERRAFORM.parent)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", [BICEP], ids=["bicep"])
def test_brackets_are_balanced(path):
    """No compiler can be had for it here."""
    text = re.sub(r"//.*|'(?:[^'\\]|\\.)*'", "", path.read_text())
    for opened, closed in ("{}", "[]", "()"):
        assert text.count(opened) == text.count(closed)
