"""The alerts: promtool accepts them, each one fires and clears in a test, and each one helps."""

import re

import pytest
import yaml
from support.debian import ToolFailed, run_tool
from support.deployed import RULE_TESTS, RULES, alerts
from support.guarded_bridge import scrape
from support.served_bridge import bridge, config

from bridge.runtime.status import ListenerStatus


async def promtool(*words: str, stdin: bytes = b"") -> str:
    return (await run_tool("promtool", *words, package="prometheus", stdin=stdin)).decode()


async def test_prometheus_accepts_the_rules():
    assert f"SUCCESS: {len(alerts())} rules found" in await promtool("check", "rules", str(RULES))


async def test_each_alert_fires_on_its_condition_for_that_bridge_alone_and_clears():
    assert "SUCCESS" in await promtool("test", "rules", str(RULE_TESTS))


def fired_and_cleared() -> set[str]:
    """The alerts that fire in a test, and after which that test sees none."""
    found = set()
    for case in yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]:
        fired = [str(one.get("exp_samples", "")) for one in case["promql_expr_test"]]
        assert fired[-1] == "", case["name"]
        names = set(re.findall(r'alertname="(\w+)"', "".join(fired)))
        assert len(names) == 1, case["name"]
        found |= names
    return found


def test_no_alert_is_without_its_test():
    assert fired_and_cleared() == set(alerts())


async def test_a_broken_alert_would_be_found(tmp_path):
    text = RULES.read_text(encoding="utf-8")
    for condition in ("seb_journal_trouble == 1", "seb_uptime_seconds < 3600"):
        assert condition in text
        text = text.replace(condition, "seb_uptime_seconds < 0")
    (tmp_path / RULES.name).write_text(text)
    (tmp_path / RULE_TESTS.name).write_text(RULE_TESTS.read_text(encoding="utf-8"))
    with pytest.raises(ToolFailed) as error:
        await promtool("test", "rules", str(tmp_path / RULE_TESTS.name))
    missed = set(re.findall(r'exp: .*alertname="(\w+)"', str(error.value)))
    assert {"SebJournalUnwritable", "SebApprovalFailed"} <= missed


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_what_is_wrong_where_and_what_to_read(name):
    rule = alerts()[name]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    notes = rule["annotations"]
    assert "$labels.instance" in notes["summary"]
    assert notes["description"].endswith(".")
    assert notes["runbook_url"].startswith("docs/runbook.md#")
    assert "absent" not in rule["expr"], "one bridge that is gone among thousands is not absent"


async def test_promtool_has_nothing_to_say_about_the_metrics(tmp_path):
    async with bridge(config(tmp_path)) as made:
        status = made.runtime.status
        status.source.clock_skew = 0.0
        heard = made.runtime.clock.monotonic()
        status.listeners["bus"] = ListenerStatus("kafka", "connected", heard=heard, lag=0)
        text = await scrape(made.http)
    assert await promtool("check", "metrics", stdin=text.encode()) == ""
