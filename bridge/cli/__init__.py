"""The commands, thin: each finds its module when it is called, so that none pays for another."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

COMMANDS = {
    "run": ("bridge.cli.commands.run", "the bridge: poll, and deliver to every sink"),
    "check": ("bridge.cli.commands.check", "validate the configuration and say what it will do"),
    "demo": ("bridge.demo.command", "the whole loop on this machine: no account, no broker"),
    "simulate": ("bridge.simulator.command", "the metadata service, faithfully, with faults"),
    "events": ("bridge.cli.commands.events", "pending and past scheduled events"),
    "watch": ("bridge.cli.commands.watch", "CloudEvents as they are recorded, live"),
    "approve": ("bridge.cli.commands.approve", "say that a scheduled event may go on"),
    "hold": ("bridge.cli.commands.approve", "say that it may not go on yet"),
    "release": ("bridge.cli.commands.approve", "take your hold back"),
    "drill": (
        "bridge.cli.commands.drill",
        "rehearse an event: never POSTed, with a report at the end",
    ),
    "sinks": ("bridge.cli.commands.sinks", "delivery state of each sink"),
    "dead-letters": ("bridge.cli.commands.dead_letters", "what a sink refused for good"),
    "health": ("bridge.cli.commands.health", "whether the bridge lives: exit code 0, else 1"),
    "schema": ("bridge.cli.commands.schema", "print a JSON Schema or the AsyncAPI document"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 1 failed, 2 usage, 78 bad configuration."""
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
    """Only the chosen command is imported for its options; the others show their line of help."""
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
