"""The `seb` command line. Only the module of the chosen command is imported."""

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from types import ModuleType

from bridge.cli.parser import Parser, command_first

COMMANDS = {
    "run": ("bridge.cli.commands.run", "run the bridge: poll, and deliver to every sink"),
    "check": ("bridge.cli.commands.check", "validate the configuration and print what it will do"),
    "demo": ("bridge.demo.command", "run the whole loop on this machine: no account, no broker"),
    "simulate": ("bridge.simulator.command", "simulate the metadata service, including its faults"),
    "status": ("bridge.cli.commands.status", "show the whole bridge on one screen"),
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
    "reload": (
        "bridge.cli.commands.reload",
        "have the bridge read its configuration again, and say what has changed",
    ),
    "health": ("bridge.cli.commands.health", "exit with 0 if the bridge is alive, else with 1"),
    "service": (
        "bridge.cli.commands.service",
        "install, start, stop or remove the Windows service",
    ),
    "keygen": ("bridge.cli.commands.keygen", "create a key with which an approver signs votes"),
    "completion": ("bridge.cli.commands.completion", "print the completion script of a shell"),
    "schema": ("bridge.cli.commands.schema", "print a JSON Schema, AsyncAPI or OpenAPI document"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 usage, 78 bad configuration."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args, module = _chosen(arguments)
    try:
        return int(module.run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _chosen(arguments: Sequence[str]) -> tuple[argparse.Namespace, ModuleType]:
    """The options, and the module of the command, imported without searches for garbage.

    Modules stay. Each search would go through all of them again, and find next to nothing.
    """
    # No plugin of pydantic may change how we read settings, and to look for one takes time.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()
    try:
        words = command_first(arguments, COMMANDS.keys())
        name = words[0] if words and words[0] in COMMANDS else None
        args = build_parser((name,) if name else COMMANDS, (name,)).parse_args(words)
        return args, importlib.import_module(COMMANDS[args.command][0])
    finally:
        gc.freeze()
        gc.enable()


def build_parser(listed: Iterable[str], complete: Collection[str | None]) -> Parser:
    """Import only *complete* commands for their options; the others contribute a line of help.

    Only the *listed* ones are read. No help or error of a command names another one.
    """
    parser = Parser(prog="seb", description=_about())
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for name in listed:
        module, text = COMMANDS[name]
        command = commands.add_parser(name, help=text, description=text)
        if name in complete:
            importlib.import_module(module).add_arguments(command)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when somebody asks: that takes longer than to read all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415  only this option needs it

        print(version("scheduled-events-bridge"))
        parser.exit()


def _about() -> str:
    return "Azure Scheduled Events as CloudEvents on Kafka, MQTT, webhooks and SIEMs."
