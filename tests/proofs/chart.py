"""The Helm chart: linted, rendered for six sets of values, and validated against the API's schemas.

The golden files beside the values are what `make test` looks at. UPDATE=1 writes them again.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from proofs.roots import ROOT, command
from support.chart import CHART, fingerprint

VALUES = sorted((ROOT / "tests" / "data" / "helm").glob("*.values.yaml"))
KUBERNETES = ("1.25", "1.31", "1.34")
VALIDATOR = "kubernetes-validate==1.34.1"
FOREIGN = {"ServiceMonitor"}
"""Kinds of others, whose schemas the API does not have."""


def main() -> None:
    helm = command(ROOT / "scripts" / "go-tool", "helm").strip()
    lint = command(helm, "lint", "--strict", "--kube-version", KUBERNETES[-1], CHART)
    print(f"  helm lint: {lint.strip().splitlines()[-1]}", flush=True)
    assert len(VALUES) == 6
    for values in VALUES:
        text = render(helm, values)
        golden = values.with_name(values.name.replace(".values.", ".golden."))
        if os.environ.get("UPDATE"):
            golden.write_text(text)
        assert golden.read_text() == text, f"{golden} differs: UPDATE=1 make test-chart"
        validate(text)
    written = VALUES[0].with_name("chart.sha256")
    if os.environ.get("UPDATE"):
        written.write_text(f"{fingerprint(CHART)}\n")
    assert written.read_text().strip() == fingerprint(CHART), "UPDATE=1 make test-chart"
    refuse(helm)


def render(helm: str, values: Path) -> str:
    words = ("--kube-version", KUBERNETES[-1], "--namespace", "bridges", "--values", values)
    return command(helm, "template", "prod", CHART, *words)


def validate(text: str) -> None:
    """Strictly: an unknown field is an error."""
    documents = [one for one in yaml.safe_load_all(text) if one["kind"] not in FOREIGN]
    python = validator()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump_all(documents, file)
        file.flush()
        for version in KUBERNETES:
            command(python, "-m", "kubernetes_validate", "--strict", "-k", version, file.name)
    kinds = ", ".join(str(one["kind"]) for one in documents)
    print(f"  valid for Kubernetes {', '.join(KUBERNETES)}: {kinds}", flush=True)


def validator() -> Path:
    """The API's schemas, in an environment of their own in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "scheduled-events-bridge" / VALIDATOR.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        command(sys.executable, "-m", "venv", "--clear", folder)
        command(python, "-m", "pip", "install", "--quiet", VALIDATOR)
        (folder / "complete").touch()
    return python


def refuse(helm: str) -> None:
    """The schema of the values finds mistakes."""
    for wrong in ("state.type=disk", "hostNetworks=true", "image.digest=latest", "probes.port=80"):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            keys, _, value = wrong.partition("=")
            given: Any = yaml.safe_load(value)
            for key in reversed(keys.split(".")):
                given = {key: given}
            yaml.safe_dump(given, file)
            file.flush()
            try:
                render(helm, Path(file.name))
            except AssertionError as error:
                assert "don't meet the specifications" in str(error), error  # noqa: PT017  of helm
            else:
                raise AssertionError(f"{wrong} was taken")
    print("  wrong values are refused", flush=True)
