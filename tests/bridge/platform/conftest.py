"""Directories whose paths are short enough for a socket."""

import os
import shutil
from pathlib import Path

import pytest

from bridge.platform import control_socket as control


@pytest.fixture
def short_paths(tmp_path_factory, monkeypatch):
    """A stand-in for /tmp, as far up as pytest allows, so that paths in it stay short."""
    path = Path(f"/tmp/seb-test-{os.getpid()}")
    path.mkdir(mode=0o1777)
    monkeypatch.setattr(control, "SHORT_PATHS", path)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def state_dir(short_paths):
    path = short_paths / "state"
    path.mkdir(mode=0o755)
    return path
