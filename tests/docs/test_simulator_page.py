"""The examples on the page about the simulator work as shown."""

import re
import shlex
from pathlib import Path
from typing import get_args

import aiohttp
import pytest

from bridge.simulator import Fault, NewEvent, Scenario, Simulator
from bridge.simulator.world.faults import Kind
from bridge.simulator.world.scenario import ACTIONS, parse, shipped
from bridge.simulator.world.script import rehearse

GUIDE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_scenario_can_be_played():
    scenario = parse(block("yaml"), where="the guide", name="guide")
    rehearse(scenario)
    assert len(scenario.script) == 6


@pytest.mark.parametrize(
    "words",
    [
        shipped(),
        ACTIONS,
        get_args(Kind),
        [field.alias or name for name, field in Fault.model_fields.items() if name != "kind"],
        list(NewEvent.model_fields),
        list(Scenario.model_fields),
    ],
    ids=["scenarios", "actions", "kinds", "fault keys", "create keys", "scenario keys"],
)
def test_the_guide_names_everything(words):
    assert [word for word in words if f"`{word}" not in GUIDE and f"`{word}`" not in GUIDE] == []


async def test_the_curl_examples_are_accepted():
    async with Simulator() as simulator, aiohttp.ClientSession() as session:
        for line in block("sh").splitlines():
            words = shlex.split(line)[1:]
            body = words[words.index("-d") + 1] if "-d" in words else None
            method = words[words.index("-X") + 1] if "-X" in words else "POST" if body else "GET"
            url = next(word for word in words if word.startswith("http"))
            url = url.replace("http://127.0.0.1:8081", simulator.endpoint)
            async with session.request(method, url, data=body) as response:
                assert response.status in {200, 201}, line


async def test_the_example_test_passes():
    names: dict = {}
    exec(compile(block("python"), "guide", "exec"), names)
    await names["test_a_reboot_is_seen"]()
