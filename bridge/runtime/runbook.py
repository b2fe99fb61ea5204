"""Where the runbook says what to do: stable names for problems, and the links to them."""

from collections.abc import Mapping
from typing import Literal

PAGE = "docs/runbook.md"
Topic = Literal[
    "bridge-down",
    "source",
    "clock",
    "vm-name",
    "sink-unavailable",
    "sink-stopped",
    "sink-untried",
    "dead-letters",
    "approval-source",
    "votes-missing",
    "start-request",
    "vote-refused",
    "access-refused",
    "journal-unwritable",
    "journal-set-aside",
    "journal-full",
    "configuration",
    "http",
    "telemetry",
    "exit-codes",
]
"""A problem that the runbook has a section about. Programs may rely on these names."""
ANCHORS: Mapping[Topic, str] = {
    "bridge-down": "the-bridge-does-not-run",
    "source": "the-metadata-service-does-not-answer",
    "clock": "the-clock-is-wrong",
    "vm-name": "the-name-of-the-vm-is-unknown",
    "sink-unavailable": "a-sink-is-unavailable",
    "sink-stopped": "a-sink-has-stopped",
    "sink-untried": "a-sink-is-untried",
    "dead-letters": "dead-letters",
    "approval-source": "no-votes-arrive",
    "votes-missing": "votes-are-missing",
    "start-request": "azure-was-not-told-in-time",
    "vote-refused": "votes-are-refused",
    "access-refused": "callers-are-refused",
    "journal-unwritable": "the-journal-cannot-be-written",
    "journal-set-aside": "a-journal-was-set-aside",
    "journal-full": "the-journal-is-full",
    "configuration": "a-configuration-was-rejected",
    "http": "http-does-not-work",
    "telemetry": "traces-are-dropped",
    "exit-codes": "exit-codes",
}


def link(topic: Topic) -> str:
    """The section of the runbook, relative to the root of the project."""
    return f"{PAGE}#{ANCHORS[topic]}"
