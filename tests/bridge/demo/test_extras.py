import argparse
import json
import sys

import pytest
from support.log_tools import log_as_before

from bridge.cli import main
from bridge.demo.extras import NotInstalled, need


@pytest.fixture(autouse=True)
def _log():
    with log_as_before():
        yield


@pytest.mark.parametrize("missing", ["confluent_kafka", "amqtt.broker"])
def test_without_the_extra_it_says_so(monkeypatch, capsys, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo"]) == 1
    assert "pip install 'scheduled-events-bridge[demo]'" in capsys.readouterr().err


def test_what_is_needed_is_imported():
    assert need("file", ["json", "argparse"]) == [json, argparse]


@pytest.mark.parametrize(("sink", "module"), [("file", "no_such_module"), ("no-such-sink", "json")])
def test_a_missing_module_or_sink_is_named_with_the_command_to_install_it(sink, module):
    with pytest.raises(
        NotInstalled, match=r"the demo needs more packages \(.*no.such.*pip install"
    ):
        need(sink, [module])
