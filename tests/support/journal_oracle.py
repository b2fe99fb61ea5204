"""Reads a journal's file as it is now, and says why its votes do not allow a POST.

It shares no code with the bridge: it reads the tables, and counts in the simplest way.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

HARSHNESS = ["Freeze", "Reboot", "Redeploy"]
HOLD = timedelta(minutes=10)


@dataclass(frozen=True)
class JournalOracle:
    """One event as the journal has it, and its votes."""

    event: dict[str, Any] | None
    mark: str | None
    votes: list[dict[str, Any]]

    @classmethod
    def read(cls, file: Path, name: str) -> "JournalOracle":
        with closing(sqlite3.connect(file)) as db:
            return cls.of(db, name)

    @classmethod
    def of(cls, db: sqlite3.Connection, name: str) -> "JournalOracle":
        found = db.execute("SELECT body FROM tracked WHERE key = ?", (name,)).fetchone()
        if found is None:
            return cls(None, None, [])
        event = json.loads(found[0])
        place = (name, event["life"])
        mark = db.execute("SELECT state FROM grants WHERE event = ? AND life = ?", place)
        told = mark.fetchone()
        states = dict(db.execute("SELECT id, body FROM announced"))
        rows = db.execute("SELECT body FROM vote WHERE event = ? AND life = ?", place)
        votes = [json.loads(body) for (body,) in rows]
        for vote in votes:
            vote["about"] = json.loads(states[vote["about"]])
        return cls(event, told[0] if told else None, votes)

    def objections(self, vm: str, rules: dict[str, Any], now: datetime) -> list[str]:
        """Why this VM's bridge must not POST by these rules; empty if it may."""
        if self.event is None:
            return ["the event is not tracked"]
        event = self.event["event"]
        checks = {
            "it has started": event["status"] == "Started",
            "it is missing": self.event["missing_since"] is not None,
            "it is not about this VM": vm not in event["resources"],
            "it is not marked": self.mark != "asked",
            "it is a dry run": rules.get("dry_run", False),
            "somebody holds": any(self._holds(vote, rules, now) for vote in self.votes),
            "it is not enough": not self._enough(rules, event["resources"]),
        }
        return [why for why, applies in checks.items() if applies]

    def _holds(self, vote: dict[str, Any], rules: dict[str, Any], now: datetime) -> bool:
        if vote["decision"] != "hold" or not _listed(vote, rules):
            return False
        if now >= _moment(vote["at"]) + HOLD:
            return False
        return not any(
            other["decision"] == "release"
            and other["resource"] == ""
            and other["approver"] == vote["approver"]
            and other["verified"] >= vote["verified"]
            and _moment(other["at"]) >= _moment(vote["at"])
            for other in self.votes
        )

    def _enough(self, rules: dict[str, Any], vms: list[str]) -> bool:
        ready = [vote for vote in self.votes if self._counts(vote, rules)]
        verified = {vote["approver"] for vote in ready if vote["verified"]}
        match rules["require"]:
            case "any":
                return bool(ready)
            case "each-resource":
                return all(any(_is_for(vote, vm, vms, rules) for vote in ready) for vm in vms)
            case {"count": number}:
                return len(verified) >= number
            case {"approvers": names}:
                return verified >= set(names)
        raise AssertionError(rules)

    def _counts(self, vote: dict[str, Any], rules: dict[str, Any]) -> bool:
        if vote["decision"] != "approve" or not _listed(vote, rules):
            return False
        return not self._worse_than(vote["about"]) and not vote["dry_run"]

    def _worse_than(self, about: dict[str, Any]) -> bool:
        assert self.event is not None
        event = self.event["event"]
        return (
            not set(event["resources"]) <= set(about["resources"])
            or HARSHNESS.index(event["event_type"]) > HARSHNESS.index(about["event_type"])
            or _moment(event["not_before"]) < _moment(about["not_before"])
        )


def _listed(vote: dict[str, Any], rules: dict[str, Any]) -> bool:
    entries = [entry for entry in rules["allow"] if entry["approver"] == vote["approver"]]
    return not rules["allow"] or any(
        vote["decision"] in entry.get("decisions", ["approve", "hold", "release"])
        for entry in entries
    )


def _is_for(vote: dict[str, Any], vm: str, vms: list[str], rules: dict[str, Any]) -> bool:
    if vote["resource"]:
        return bool(vote["resource"] == vm)
    entries = [entry for entry in rules["allow"] if entry["approver"] == vote["approver"]]
    return len(vms) == 1 or any(entry.get("all_resources") for entry in entries)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
