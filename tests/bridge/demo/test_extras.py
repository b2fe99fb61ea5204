import sys

import pytest
from support.log_tools import log_as_before

from bridge.cli import main


@pytest.fixture(autouse=True)
def _log():
    with log_as_before():
        yield


@pytest.mark.parametrize("missing", ["confluent_kafka", "amqtt.broker"])
def test_without_the_extra_it_says_so(monkeypatch, capsys, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo"]) == 1
    assert "pip install 'scheduled-events-bridge[demo]'" in capsys.readouterr().err
