"""How far the approvals of a scheduled event are, in words for a table; pure."""

from collections.abc import Mapping
from typing import Any

from bridge.cli.text import names
from bridge.policy.require import ANY_APPROVER

_GRANTS = {"granted": "granted", "asked": "Azure is told", "due": "Azure is told"}


def progress(event: Mapping[str, Any]) -> str:
    """`1 of 2`, who holds it, or that Azure accepted; `-` when votes no longer matter."""
    found = event.get("approvals")
    if not found or event["status"] != "Scheduled":
        return "-"
    if found["grant"] in _GRANTS:
        return _GRANTS[found["grant"]]
    if found["holds"]:
        return f"held by {names([one['approver'] for one in found['holds']], 1)}"
    if found["satisfied"]:
        return "dry run" if found["dryRun"] else "enough"
    if found["require"] == "each-resource" or found["require"].startswith("approvers"):
        return f"{len(found['have'])} of {len(found['have']) + len(found['missing'])}"
    return "none" if found["require"] == "any" else f"{' '.join(found['missing'])} needed"


def lacking(event: Mapping[str, Any]) -> str | None:
    """Which VMs or approvers are missing; None when nobody is, or when votes no longer matter."""
    found = event.get("approvals")
    if not found or event["status"] != "Scheduled" or not found["missing"]:
        return None
    missing = tuple(found["missing"])
    return "one approval" if missing == ANY_APPROVER else ", ".join(missing)
