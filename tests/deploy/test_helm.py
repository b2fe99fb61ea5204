"""The Helm chart, by what it rendered: `make test-chart` keeps the golden files equal to the chart."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.chart import CHART, fingerprint

from bridge.config import load

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests" / "data" / "helm").glob("*.golden.yaml"))
UNRESTRICTED = {"durable", "host-network"}
"""They need what Pod Security restricted forbids, and the chart says so."""
VOLUMES = {"configMap", "emptyDir", "secret"}


def name(path: Path) -> str:
    return path.name.partition(".")[0]


def rendered(path: Path) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all(path.read_text())}


def pod(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = rendered(path)["DaemonSet"]["spec"]["template"]["spec"]
    return found


def is_restricted(spec: dict[str, Any]) -> bool:
    """The rules of Pod Security restricted that concern what the chart writes."""
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    return (
        not spec.get("hostNetwork")
        and all(VOLUMES & set(volume) for volume in spec["volumes"])
        and spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        and spec["securityContext"]["runAsNonRoot"]
        and all(is_confined(one["securityContext"]) for one in containers)
    )


def is_confined(context: dict[str, Any]) -> bool:
    return (
        context["allowPrivilegeEscalation"] is False
        and context["readOnlyRootFilesystem"] is True
        and context["capabilities"] == {"drop": ["ALL"]}
        and context.get("runAsUser") != 0
    )


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (project["version"], project["version"])


def test_the_golden_files_are_of_this_chart():
    """Without helm: `UPDATE=1 make test-chart` renders them and writes down what they were made of."""
    assert fingerprint(CHART) == (GOLDEN[0].parent / "chart.sha256").read_text().strip()


def test_the_schema_knows_every_value_and_no_other():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    for key, value in values.items():
        listed = schema["properties"][key].get("properties")
        if listed is not None:
            assert set(value) == set(listed), key


@pytest.mark.parametrize("path", GOLDEN, ids=name)
def test_pods_keep_to_pod_security_restricted_unless_asked_for_more(path):
    assert is_restricted(pod(path)) is (name(path) not in UNRESTRICTED)


@pytest.mark.parametrize("path", GOLDEN, ids=name)
def test_the_bridge_reads_the_configuration_that_the_chart_writes(path, tmp_path):
    [bridge] = [one for one in pod(path)["containers"] if one["name"] == "bridge"]
    file = tmp_path / "config.yaml"
    file.write_text(rendered(path)["ConfigMap"]["data"]["config.yaml"])
    config = load(file, {variable["name"]: "node-1" for variable in bridge["env"]})
    assert config.source.labels["node"] == "node-1"
    assert config.http.probes_listen is not None
    assert config.http.probes_listen.port == bridge["ports"][0]["containerPort"]
    assert config.stop_grace < pod(path)["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("path", GOLDEN, ids=name)
def test_no_secret_is_in_what_is_rendered(path):
    assert "Secret" not in rendered(path)
    for container in pod(path)["containers"]:
        for variable in container["env"]:
            assert "value" not in variable


def test_a_rehearsal_asks_only_its_own_simulator():
    [path] = [one for one in GOLDEN if name(one) == "rehearsal"]
    config = yaml.safe_load(rendered(path)["ConfigMap"]["data"]["config.yaml"])
    [simulator] = [one for one in pod(path)["containers"] if one["name"] == "simulator"]
    assert config["source"]["endpoint"] == "http://127.0.0.1:8081"
    assert "--port=8081" in simulator["args"]
