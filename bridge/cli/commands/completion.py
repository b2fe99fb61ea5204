"""`seb completion`: a script that completes commands, options and files in a shell."""

import argparse
from importlib import import_module

from bridge.cli.shell import tell

SHELLS = ("bash", "zsh", "fish", "powershell")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}"
    )


def run(args: argparse.Namespace) -> int:
    """Import every command: the script names all their options."""
    from bridge.cli import COMMANDS, build_parser  # noqa: PLC0415  it imports this module
    from bridge.cli.completion.tree import tree  # noqa: PLC0415  as above

    shell = import_module(f"bridge.cli.completion.{args.shell}")
    tell(shell.script(tree(build_parser(COMMANDS, COMMANDS))))
    return 0
