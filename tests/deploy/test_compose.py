"""The compose file: by the schema of the Compose specification, and each service as far as it runs here."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from support.debian import tool
from support.ports import free_ports
from support.until import until

from bridge.cli import _chosen
from bridge.config import load
from bridge.simulator.world.scenario import shipped

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "compose.yaml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def content(compose: dict[str, Any], name: str) -> str:
    return str(compose["configs"][name]["content"])


def test_the_file_keeps_to_the_specification(compose):
    schema = json.loads((ROOT / "tests" / "data" / "compose-spec.json").read_text())
    problems = [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(compose)]
    assert problems == []


def test_every_name_that_a_service_uses_is_defined(compose):
    for name, service in compose["services"].items():
        for used in service.get("configs", []):
            assert used["source"] in compose["configs"], name
        for other in service.get("depends_on", []):
            assert other in compose["services"], name
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source.startswith("./") or source in compose["volumes"], name


def test_everything_is_on_this_machine_only(compose):
    ports = [port for one in compose["services"].values() for port in one.get("ports", [])]
    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_our_containers_are_confined(compose):
    for name in ("bridge", "simulator"):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


def test_the_bridge_reads_its_configuration(compose, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(content(compose, "bridge"))
    config = load(file, {})
    assert {sink.type for sink in config.sinks.values()} == {"kafka", "mqtt", "stdout"}
    port = content(compose, "prometheus").split("simulator:")[1][:5]
    assert str(config.http.probes_listen) == f"0.0.0.0:{port}"
    assert config.source.endpoint == "http://127.0.0.1:8081"
    inside = compose["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"//{config.sinks['orders-bus'].bootstrap_servers[0]}" in inside  # type: ignore[attr-defined]  # of the kafka sink


def test_our_commands_exist(compose):
    given, _ = _chosen(compose["services"]["simulator"]["command"])
    assert (given.port, given.scenario in shipped()) == (8081, True)
    given, _ = _chosen(compose["services"]["bridge"]["command"])
    assert str(given.config) == compose["services"]["bridge"]["environment"]["SEB_CONFIG"]


def test_prometheus_accepts_its_configuration(compose, tmp_path):
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool here")
    file = tmp_path / "prometheus.yml"
    file.write_text(content(compose, "prometheus"))
    command = ["promtool", "check", "config", "--syntax-only", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


async def test_mosquitto_starts_with_its_configuration(compose, tmp_path):
    program = str(tool("mosquitto"))
    [port] = free_ports(1)
    file, log = tmp_path / "mosquitto.conf", tmp_path / "log"
    file.write_text(content(compose, "mosquitto").replace("1883", f"{port} 127.0.0.1"))
    with log.open("wb") as out:
        process = subprocess.Popen([program, "-c", str(file)], stdout=out, stderr=out)
    try:
        await until(lambda: "running" in log.read_text(), "Mosquitto", log.read_text)
    finally:
        process.kill()
        process.wait()
