"""`seb service`: the bridge as a Windows service."""

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from bridge.cli.shell import BAD_CONFIGURATION, FAILED, complain, tell
from bridge.common.log import add_handler
from bridge.config import Config, ConfigError, load
from bridge.platform import ServiceError, config_file

_PATIENCE = 120.0
_ACTIONS = {
    "install": "install the service; it starts with the machine",
    "start": "start the service, and wait until it runs",
    "stop": "stop the service in order, and wait until it has stopped",
    "remove": "stop and remove the service; configuration, journal and logs stay",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    made = {name: actions.add_parser(name, help=text) for name, text in _ACTIONS.items()}
    made["run"] = actions.add_parser("run")  # what Windows starts; nobody types it
    for name in ("install", "run"):
        made[name].add_argument(
            "-c", "--config", type=Path, metavar="FILE", help="the configuration"
        )
    made["install"].add_argument(
        "--account",
        metavar="NAME",
        help=r"the account of the service: LocalSystem, or one without a password; by default "
        r"NT SERVICE\scheduled-events-bridge, which has no rights but to its own directory",
    )
    made["install"].add_argument(
        "--manual", action="store_true", help="do not start the service with the machine"
    )
    for name in ("start", "stop", "remove"):
        made[name].add_argument(
            "--patience",
            type=float,
            default=_PATIENCE,
            metavar="SECONDS",
            help="how long to wait (default: %(default).0f)",
        )


def run(args: argparse.Namespace) -> int:
    """Return 0 when it is done, 1 if Windows refused, 78 if the configuration is wrong."""
    act: Callable[[argparse.Namespace], int] = {
        "install": _install,
        "start": _start,
        "stop": _stop,
        "remove": _remove,
        "run": _host,
    }[args.action]
    try:
        return act(args)
    except ServiceError as error:
        complain(str(error))
        return FAILED
    except ConfigError as error:
        for problem in error.problems:
            complain(problem)
        return BAD_CONFIGURATION


def _install(args: argparse.Namespace) -> int:
    from bridge.platform import windows_service as service  # noqa: PLC0415  only on Windows

    file = (args.config or config_file()).absolute()
    _check(load(file, os.environ))
    words = [sys.executable, "-I", "-m", "bridge.cli", "service", "run", "-c", str(file)]
    account = args.account or service.ACCOUNT
    for sentence in service.install_service(words, account=account, automatic=not args.manual):
        complain(sentence)
    tell(f"Installed {service.NAME}. Start it with: seb service start\n")
    return 0


def _check(config: Config) -> None:
    """A service has no terminal: what goes to stdout would only wait in the journal."""
    for name, sink in config.sinks.items():
        if sink.type == "stdout":
            raise ServiceError(
                f"cannot install the service: the sink {name!r} writes to stdout, and a service "
                "has none; use a sink of the type file"
            )


def _start(args: argparse.Namespace) -> int:
    from bridge.platform import windows_service as service  # noqa: PLC0415  only on Windows

    service.start_service(args.patience)
    tell(f"{service.NAME} runs. Its log is {service.log_file()}\n")
    return 0


def _stop(args: argparse.Namespace) -> int:
    from bridge.platform import windows_service as service  # noqa: PLC0415  only on Windows

    service.stop_service(args.patience)
    tell(f"{service.NAME} has stopped.\n")
    return 0


def _remove(args: argparse.Namespace) -> int:
    from bridge.platform import windows_service as service  # noqa: PLC0415  only on Windows

    service.remove_service(args.patience)
    tell(f"Removed {service.NAME}. Its configuration, journal and logs are still there.\n")
    return 0


def _host(args: argparse.Namespace) -> int:
    from bridge.platform import windows_host as host  # noqa: PLC0415  only on Windows
    from bridge.platform.windows_service import log_file  # noqa: PLC0415  only on Windows

    def main() -> int:
        from bridge.cli.commands.run import run as run_bridge  # noqa: PLC0415  reports as it loads

        add_handler(host.LogFile(log_file()))
        add_handler(host.EventLog(), text=True)
        return run_bridge(argparse.Namespace(config=args.config, once=False))

    logging.raiseExceptions = False
    host.host_service(main)
    return 0
