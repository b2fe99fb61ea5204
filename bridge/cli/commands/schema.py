"""`seb schema`: the published contract, as JSON Schema, AsyncAPI and OpenAPI."""

import argparse

from bridge.cli.shell import USAGE, complain, tell
from bridge.common import schemas


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="the document to print (default: list them)"
    )


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        tell("".join(f"{name}\n" for name in schemas.names()))
        return 0
    try:
        tell(schemas.read(args.name))
    except LookupError as error:
        complain(str(error.args[0]))
        return USAGE
    return 0
