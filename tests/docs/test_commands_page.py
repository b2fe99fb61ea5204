"""The page about commands lists every command and every option."""

import argparse
import importlib
from pathlib import Path

import pytest

from bridge.cli import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text("utf-8")
EVERYWHERE = {"--help", "-h", "--config", "-c"}


def options(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from options(each)
        yield from action.option_strings


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_is_on_the_page(name):
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[name][0]).add_arguments(parser)
    spelled = f"seb {name}" if name not in {"hold", "release"} else f"`{name}`"
    assert spelled in PAGE
    assert [one for one in sorted({*options(parser)} - EVERYWHERE) if one not in PAGE] == []
