"""Where the Helm chart is, and what it was when its golden files were made."""

import hashlib
from pathlib import Path

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "scheduled-events-bridge"


def fingerprint(chart: Path) -> str:
    """One hash of all files of a chart, and of the values that it is rendered for."""
    values = (Path(__file__).parents[1] / "data" / "helm").glob("*.values.yaml")
    found = hashlib.sha256()
    for path in sorted([*(one for one in chart.rglob("*") if one.is_file()), *values]):
        found.update(f"{path.name}\0".encode() + path.read_bytes())
    return found.hexdigest()
