"""The words after a command, as its module reads them."""

import argparse
from typing import Any


def parse(module: Any, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="seb")
    module.add_arguments(parser)
    return parser.parse_args(words)
