"""`seb health`: tells supervisors by exit code whether the bridge is alive, or ready."""

import argparse

from bridge.cli.shell import Ask, add_connection, talk, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--ready", action="store_true", help="also check that it is ready")


def run(args: argparse.Namespace) -> int:
    """Return 0 if the bridge is healthy; the control socket needs neither a token nor TLS."""

    async def conversation(ask: Ask) -> int:
        await ask("GET", "/readyz" if args.ready else "/livez")
        tell("ready\n" if args.ready else "alive\n")
        return 0

    return talk(args, conversation)
