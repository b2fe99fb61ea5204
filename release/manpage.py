"""The manual page: a frame of our own, and what the commands say about themselves."""

import argparse
import gzip
import importlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bridge.cli import COMMANDS
from release.facts import ROOT

FRAME = ROOT / "deploy" / "package" / "seb.1.in"


def write(target: Path, *, version: str, epoch: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    text = page(version=version, epoch=epoch)
    target.write_bytes(gzip.compress(text.encode(), mtime=0))


def page(*, version: str, epoch: int) -> str:
    date = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d")
    commands = "\n".join(_command(name, *COMMANDS[name]) for name in COMMANDS)
    frame = FRAME.read_text("utf-8").replace("@DATE@", date).replace("@VERSION@", version)
    return frame.replace("@COMMANDS@", commands)


def _command(name: str, module: str, text: str) -> str:
    parser = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
    importlib.import_module(module).add_arguments(parser)
    lines = [".SS " + _escaped(f"seb {name}"), _escaped(f"{text[0].upper()}{text[1:]}.")]
    return "\n".join([*lines, *_options(parser)])


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:  # noqa: SLF001  as above
            continue
        yield ".TP"
        yield ".B " + _escaped(_name(action))
        told = (action.help or "").replace("%%", "%")
        yield _escaped(told.replace("%(default)s", str(action.default))) or "\\&"


def _name(action: argparse.Action) -> str:
    shown = action.metavar or (
        "|".join(map(str, action.choices)) if action.choices else action.dest
    )
    value = " ".join(shown) if isinstance(shown, tuple) else str(shown)
    if not action.option_strings:
        return value
    takes = "" if action.nargs == 0 else f" {value.upper() if action.metavar is None else value}"
    return f"{', '.join(action.option_strings)}{takes}"


def _escaped(text: str) -> str:
    text = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
