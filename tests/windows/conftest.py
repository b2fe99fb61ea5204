"""The Wine that all tests here share. `make test-windows` sets the variables; `make test` skips this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lacking import lacking
from support.wine import Wine, wine_in

collect_ignore_glob = [] if "SEB_WINE_PREFIX" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    if "SEB_WINE_PREFIX" not in os.environ:
        lacking("run it with: make test-windows")
    folder = tmp_path_factory.mktemp("wine")
    prefix, package = Path(os.environ["SEB_WINE_PREFIX"]), Path(os.environ["SEB_WINDOWS_PACKAGE"])
    with wine_in(folder, prefix, package) as running:
        yield running
