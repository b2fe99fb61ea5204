"""What `deploy/` has for Prometheus and Grafana: the alerts, the dashboard, and their queries."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
RULE_TESTS = ROOT / "deploy" / "prometheus" / "alerts.test.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "scheduled-events-bridge.json"
SELECTOR = re.compile(r"\b((?:seb_|process_)\w+|up)\b(\{[^}]*\})?")
_VARIABLES = {
    "$__rate_interval": "1m",
    "$__range": "1h",
    "$job": ".+",
    "$instance": ".+",
}


def alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    found = {rule["alert"]: rule for rule in rules}
    assert len(found) == len(rules)
    return found


def selectors(expression: str) -> list[str]:
    """Each metric of a query, with its conditions."""
    return [name + (conditions or "") for name, conditions in SELECTOR.findall(expression)]


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return read


def queries() -> Iterator[tuple[str, str]]:
    """The title of each panel with each of its queries, as Grafana would send it."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in _VARIABLES.items():
                query = query.replace(name, value)
            yield panel["title"], query
