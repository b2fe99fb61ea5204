"""A configuration file for a test, its values, and its problems."""

from pathlib import Path

import pytest
from support.third_party_source import register

from bridge import platform
from bridge.config import ConfigError, load


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "config_file", lambda: tmp_path / "etc" / "config.yaml")


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "config.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def read(write):
    return lambda text, **environ: load(write(text), environ)


@pytest.fixture
def problems(write):
    """What `load` reports for *text*, without the file's name."""

    def problems(text: str | bytes, **environ: str) -> list[str]:
        path = write(text)
        with pytest.raises(ConfigError) as caught:
            load(path, environ)
        lines = str(caught.value).splitlines()
        assert lines == list(caught.value.problems)
        assert all(line.startswith(str(path)) for line in lines)
        return [line.removeprefix(str(path)) for line in lines]

    return problems


@pytest.fixture
def tail():
    """A type of approval source from another package."""
    undo = register()
    yield
    undo()
