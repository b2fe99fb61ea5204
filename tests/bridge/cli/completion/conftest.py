"""The commands as the real parser has them."""

import pytest

from bridge.cli import COMMANDS, build_parser
from bridge.cli.completion.tree import tree


@pytest.fixture(scope="session")
def root():
    return tree(build_parser(COMMANDS, COMMANDS))
