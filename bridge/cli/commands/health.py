"""`seb health`: whether the running bridge lives, or is ready, as an exit code for supervisors."""

import argparse

from bridge.cli.shell import Ask, add_connection, talk, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--ready", action="store_true", help="also fresh, writable, connected")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when it is well; the control socket needs neither token nor TLS."""

    async def conversation(ask: Ask) -> int:
        await ask("GET", "/readyz" if args.ready else "/livez")
        tell("ready\n" if args.ready else "alive\n")
        return 0

    return talk(args, conversation)
