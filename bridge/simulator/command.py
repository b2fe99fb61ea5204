"""`seb simulate`: run the simulated metadata service on this machine, until Ctrl-C."""

import argparse
import asyncio
import errno
import os
import signal
import sys
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bridge.simulator.simulator import Simulator
from bridge.simulator.world.scenario import Unusable, load, shipped
from bridge.simulator.world.truth import Record

BAD_CONFIGURATION = 78


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenario",
        default="reboot",
        metavar="NAME|FILE",
        help=f"what happens: a file, or one of {', '.join(shipped())} (default: reboot)",
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=8081,
        help="of the first VM; others get the next ports; 0: any free ports (default: 8081)",
    )
    parser.add_argument(
        "--speed",
        type=_speed,
        default=1.0,
        metavar="N",
        help="divides all durations: at 60, a notice of 15m takes 15 seconds (default: 1)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="changes EventIds and random choices"
    )
    parser.add_argument(
        "--truth", type=Path, metavar="FILE", help="append what really happened, as JSON lines"
    )
    parser.add_argument("--vm-name", metavar="NAME", help="the name of the first VM")
    parser.add_argument(
        "--exit-when-done",
        action="store_true",
        help="end when the script has ended and no event is left",
    )


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_simulate(args))
    except Unusable as unusable:
        return _fail(str(unusable), BAD_CONFIGURATION)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        if error.filename is None and error.errno in {errno.EADDRINUSE, errno.EACCES}:
            return _fail(f"port {args.port} on 127.0.0.1 cannot be used: {why}; try --port 0", 1)
        return _fail(f"the truth file {args.truth} cannot be written: {why}", 1)


async def _simulate(args: argparse.Namespace) -> int:
    scenario = load(args.scenario)
    if args.vm_name:
        scenario = scenario.renamed(args.vm_name)
    simulator = Simulator(
        scenario,
        speed=args.speed,
        port=args.port,
        seed=args.seed,
        truth=args.truth,
        tell=_narrate,
    )
    with _stop_signals() as stop:
        async with simulator:
            _introduce(simulator)
            until = simulator.done() if args.exit_when_done else simulator.failed()
            await _first(stop.wait(), until)
    return 0


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Return or raise as soon as the first of them does."""
    tasks = {asyncio.create_task(wait) for wait in waits}
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in ended:
        task.result()


@contextmanager
def _stop_signals() -> Generator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set; the old handlers are restored afterward."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def handler(*_: object) -> None:
        loop.call_soon_threadsafe(stop.set)

    old = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, before in old.items():
            signal.signal(number, before)


def _introduce(simulator: Simulator) -> None:
    scenario, endpoint = simulator.scenario, simulator.endpoint
    path = "/metadata/scheduledevents?api-version=2020-07-01"
    lines = [
        f"Scenario {scenario.name}: {scenario.description or 'no description'}",
        *(f"  {name} asks {its}" for name, its in simulator.endpoints.items()),
        f"Point a bridge at it: source: {{endpoint: '{endpoint}'}}",
        f"Look yourself:        curl -H Metadata:true '{endpoint}{path}'",
        f"Take control:         curl {endpoint}/control/state",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _narrate(record: Record) -> None:
    """One line on stderr for each thing that happens."""
    words = [record["at"], record["what"]]
    if "eventType" in record:
        resources = ", ".join(record["resources"])
        words += [record["eventType"], record["eventId"], f"({resources}; {record['cause']})"]
    else:
        shown = ("name", "kind", "vm", "eventIds", "status", "fault", "action", "reason")
        words += [f"{key}={record[key]}" for key in shown if record.get(key) is not None]
    with suppress(BrokenPipeError):  # the reader is gone; the simulation continues
        sys.stderr.write(" ".join(words) + "\n")


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


def _port(text: str) -> int:
    if text.isdecimal() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port; write a number from 0 to 65535")


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if 0 < value < float("inf"):
        return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a speed; write a number greater than 0")
