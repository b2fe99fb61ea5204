"""The configuration of the bridges under a soak, and who may vote by it."""

from pathlib import Path
from typing import Any

from support.signing import Signer

Json = dict[str, Any]
EVENTS, VOTES = "soak.events", "soak.approvals"
MQTT_EVENTS, MQTT_VOTES = "soak/events", "soak/approvals"
TOKEN = "the-token-of-the-operators"
PLANT = Signer("plant", seed=7)
"""Votes over MQTT, signed."""
FORGER = Signer("plant", seed=8)
"""Claims the same name, with a key of its own."""
SINKS = ("bus", "floor", "hook", "siem", "archive", "drain")
DRAINED: Json = {
    "types": ["azure.scheduledevents.scheduled.v1", "azure.scheduledevents.updated.v1"],
    "event_types": ["Freeze"],
}
RETRY = {"timeout": "4s"}
LANES = {
    "bus": "kafka",
    "floor": "mqtt",
    "hook": "webhook",
    "siem": "syslog",
    "archive": "file",
    "drain": "command",
}
"""Which lane of the program a sink is on."""


def judged() -> Json:
    """The rules by which the judge counts: `then: approve` needs no entry, and its vote is verified."""
    drain = {"approver": "sink:drain", "via": "sink", "keys": []}
    return {**rules(), "allow": [*rules()["allow"], drain]}


def rules() -> Json:
    """Who may vote, and what is enough."""
    return {
        "require": "each-resource",
        "allow": [
            {"approver": "orders", "via": "bus"},
            {"approver": "night-shift", "via": "bus"},
            PLANT.entry(via="floor"),
            {"approver": "ops", "token": "ops", "via": "http"},
        ],
    }


def sinks(place: Json, folder: Path) -> Json:
    """One of each technology, all of them required."""
    bus = {"type": "kafka", "bootstrap_servers": place["kafka"], "topic": EVENTS}
    floor = {"type": "mqtt", "host": "127.0.0.1", "port": place["mqtt"], "keep_alive": "5s"}
    hook = {"type": "webhook", "url": place["webhook"], "tls": {"ca": place["authority"]}}
    siem = {"type": "syslog", "address": place["syslog"], "max_size": "64KiB"}
    run = 'test -e "$0.later" && exit 75; { cat; echo; } >> "$0"'
    drain = {"type": "command", "argv": ["/bin/sh", "-c", run, str(folder / "drain.jsonl")]}
    return {
        "bus": {**bus, "retry": RETRY},
        "floor": {**floor, "topic": f"{MQTT_EVENTS}/{{subject}}", "retry": RETRY},
        "hook": {**hook, "retry": RETRY},
        "siem": {**siem, "keep_connected": False, "retry": RETRY},
        "archive": {"type": "file", "path": str(folder / "archive.jsonl")},
        "drain": {**drain, "only": DRAINED, "then": "approve", "timeout": "10s"},
    }


def approvals(place: Json) -> Json:
    floor = {"type": "mqtt", "host": "127.0.0.1", "port": place["mqtt"], "topic": MQTT_VOTES}
    return {
        "from": {
            "bus": {"sink": "bus", "topic": VOTES, "trust": "transport"},
            "floor": {**floor, "trust": "signed", "keep_alive": "5s"},
        },
        **rules(),
        "takeover_after": "3s",
        "hold_timeout": "1h",
    }


def config(place: Json, folder: Path, endpoint: str, port: int) -> Json:
    """The whole file; *place* names the addresses of the servers."""
    token = {"name": "ops", "token": TOKEN, "scopes": ["read", "approve", "operate"]}
    return {
        "source": {"endpoint": endpoint, "poll_interval": "500ms", "degraded_after": "20s"},
        "state_dir": str(folder / "state"),
        "stop_grace": "5s",
        "sinks": sinks(place, folder),
        "approvals": approvals(place),
        "http": {"listen": f"127.0.0.1:{port}", "tokens": [token]},
    }
