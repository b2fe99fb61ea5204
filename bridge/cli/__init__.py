"""The `seb` command line. Only the module of the chosen command is imported."""

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType

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
    "service": (
        "bridge.cli.commands.service",
        "install, start, stop or remove the Windows service",
    ),
    "schema": ("bridge.cli.commands.schema", "print a JSON Schema or the AsyncAPI document"),
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
        name = next((word for word in arguments if not word.startswith("-")), None)
        listed = arguments[:1] if arguments[:1] == [name] and name in COMMANDS else COMMANDS
        args = _parser(name, listed).parse_args(arguments)
        return args, importlib.import_module(COMMANDS[args.command][0])
    finally:
        gc.freeze()
        gc.enable()


def _parser(chosen: str | None, listed: Iterable[str]) -> argparse.ArgumentParser:
    """Import only the chosen command for its options; the others contribute a line of help.

    Only the *listed* ones are read. No help or error of a command names another one.
    """
    parser = argparse.ArgumentParser(prog="seb", description=_about(), allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in listed:
        module, text = COMMANDS[name]
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == chosen:
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
