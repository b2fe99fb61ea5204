"""The page about operations lists every metric that the code writes, and alerts on no other."""

import re
from pathlib import Path

from support.deployed import SELECTOR, alerts, queries
from support.guarded_bridge import scrape
from support.prometheus import Parsed, parse
from support.served_bridge import bridge, config

from bridge.runtime.status import ListenerStatus

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## Metrics")[1].split("### Alerts")[0]
ALERTS = PAGE.split("### Alerts")[1].split("\n### ")[0]
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


async def written(folder: Path) -> dict[str, Parsed]:
    """All metrics, of a bridge that has a value for each."""
    async with bridge(config(folder)) as made:
        status = made.runtime.status
        status.source.clock_skew = 0.0
        heard = made.runtime.clock.monotonic()
        status.listeners["bus"] = ListenerStatus("kafka", "connected", heard=heard, lag=0)
        return parse(await scrape(made.http))


async def test_the_page_lists_every_metric_with_its_labels_and_no_other(tmp_path):
    listed = {
        name: set(re.findall(r"`(\w+)`", labels))
        for names, labels in re.findall(
            r"^\| (`(?:seb|process)_[^|]*) \| ([^|]*)\|", TABLE, re.MULTILINE
        )
        for name in re.findall(r"`(\w+)`", names)
    }
    found = {
        name: {label for _, labels in family.samples for label, _ in labels} - {"le"}
        for name, family in (await written(tmp_path)).items()
    }
    assert listed == found


async def test_every_alert_and_panel_is_about_metrics_and_values_that_exist(tmp_path):
    found = await written(tmp_path)
    expressions = [rule["expr"] for rule in alerts().values()]
    expressions += [query for _, query in queries()]
    for name, conditions in SELECTOR.findall("\n".join(expressions)):
        if name == "up":
            continue
        exact = dict(re.findall(r'(\w+)="([^"]*)"', conditions))
        samples = [dict(one) for _, one in found[HISTOGRAM.sub("", name)].samples]
        assert any(exact.items() <= one.items() for one in samples), (name, exact)


def test_the_page_lists_every_alert_with_its_severity():
    listed = dict(re.findall(r"^\| `(Seb\w+)` \| (\w+) \|", ALERTS, re.MULTILINE))
    assert listed == {name: rule["labels"]["severity"] for name, rule in alerts().items()}
