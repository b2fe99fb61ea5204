"""The `seb` command line. Only the module of the chosen command is imported."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

COMMANDS = {
    "run": ("bridge.cli.commands.run", "run the bridge: poll, and deliver to every sink"),
    "check": ("bridge.cli.commands.check", "validate the configuration and print what it will do"),
    "demo": ("bridge.demo.command", "run the whole loop on this machine: no account, no broker"),
    "simulate": ("bridge.simulator.command", "simulate the metadata service, including its faults"),
    "events": ("bridge.cli.commands.events", "list pending and past scheduled events"),
    "watch": ("bridge.cli.commands.watch", "show CloudEvents live, as they are recorded"),
    "approve": ("bridge.cli.commands.approve", "approve a scheduled event"),
    "hold": ("bridge.cli.commands.approve", "ask the bridges not to approve a scheduled event yet"),
    "release": ("bridge.cli.commands.approve", "take back your hold"),
    "drill": (
        "bridge.cli.commands.drill",
        "rehearse an event and report on it; Azure is never contacted",
    ),
    "sinks": ("bridge.cli.commands.sinks", "show the delivery state of each sink"),
    "dead-letters": (
        "bridge.cli.commands.dead_letters",
        "list, replay or drop what a sink refused for good",
    ),
    "health": ("bridge.cli.commands.health", "exit with 0 if the bridge is alive, else with 1"),
    "schema": ("bridge.cli.commands.schema", "print a JSON Schema or the AsyncAPI document"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 usage, 78 bad configuration."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    parser = _parser(name if name in COMMANDS else None)
    args = parser.parse_args(arguments)
    module = importlib.import_module(COMMANDS[args.command][0])
    try:
        return int(module.run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Import only the chosen command for its options; the others contribute a line of help."""
    parser = argparse.ArgumentParser(prog="seb", description=_about(), allow_abbrev=False)
    parser.add_argument("--version", action="version", version=version("scheduled-events-bridge"))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == chosen:
            importlib.import_module(module).add_arguments(command)
    return parser


def _about() -> str:
    return "Azure Scheduled Events as CloudEvents on Kafka, MQTT, webhooks and SIEMs."
