"""A real Prometheus scrapes a real bridge: all alerts and all panels of the dashboard find their data."""

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support import bridge_process
from support.bridge_process import Stage, announce, posts
from support.deployed import alerts, queries, selectors
from support.kafka_broker import Broker
from support.kafka_stage import Topic, approvals, kafka_sink
from support.ports import free_ports
from support.prometheus_server import Prometheus
from support.until import until


async def live(at: Stage, votes: Topic) -> None:
    """One event from its announcement to its end, with a vote on it and a failed poll."""
    announce(at, "reboot", started_for=None)
    await at.until_said("event.scheduled")
    [scheduled] = at.said("event.scheduled")
    await votes.write({"eventId": scheduled["event_id"], "approver": "orders"})
    await at.until(lambda: posts(at), "the POST")
    await at.until_said("event.started")
    at.world.complete("reboot")
    at.world.fault("status", status=500, count=2)
    await at.until_said("poll.recovered")
    announce(at, "another", started_for=None)


def firing(prometheus: Prometheus) -> Callable[[], Awaitable[set[str]]]:
    async def names() -> set[str]:
        found = await prometheus.ask('ALERTS{alertstate="firing"}')
        return {one["metric"]["alertname"] for one in found}

    return names


@pytest.mark.timeout(180)
async def test_every_alert_and_every_panel_is_answered(kafka: Broker, tmp_path: Path):
    events = Topic(kafka.bootstrap, await kafka.topic(1))
    votes = Topic(kafka.bootstrap, await kafka.topic(1))
    [probes] = free_ports(1)
    async with bridge_process.stage(
        tmp_path / "bridge",
        sinks={"bus": kafka_sink(kafka.bootstrap, events.name)},
        approvals=approvals(votes.name),
        http={"listen": None, "probes_listen": f"127.0.0.1:{probes}"},
    ) as at:
        with Prometheus(tmp_path / "prometheus", target=f"127.0.0.1:{probes}") as prometheus:
            await at.start()
            await until(lambda: prometheus.ask("seb_ready == 1"), "the first scrape", at.output)
            await live(at, votes)
            at.configure(sinks={"bus": {"type": "telegraph"}})
            at.signal(signal.SIGHUP)
            names = firing(prometheus)
            await until(lambda: is_so(names, {"SebReloadRejected"}), "the alert", at.output)
            for title, query in queries():
                await until(lambda q=query: prometheus.ask(q), f"{title}: {query}", at.output)  # type: ignore[misc]  # bound now
            for name, rule in alerts().items():
                await prometheus.ask(rule["expr"])
                for one in selectors(rule["expr"]):
                    assert await prometheus.ask(one), f"{name}: {one} has no data"
            at.configure(sinks={"bus": kafka_sink(kafka.bootstrap, events.name)})
            at.signal(signal.SIGHUP)
            await until(lambda: is_so(names, set()), "the alert to clear", at.output)


async def is_so(names: Callable[[], Awaitable[set[str]]], expected: set[str]) -> bool:
    return await names() == expected
