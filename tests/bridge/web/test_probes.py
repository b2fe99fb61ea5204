from support.guarded_bridge import scrape
from support.prometheus import parse


async def test_the_probes_address_serves_probes_and_nothing_else(running):
    assert (await running.probes.ask("GET", "/livez")) == (200, {"alive": True, "why": None})
    assert (await running.probes.ask("GET", "/readyz"))[0] == 200
    parse(await scrape(running.probes))
    for path in ("/", "/api/v1/events", "/api/v1/stream"):
        assert (await running.probes.ask("GET", path))[0] == 404
    assert (await running.probes.ask("POST", "/readyz"))[0] == 405


async def test_a_bridge_that_is_not_ready_says_why(running):
    running.runtime.status.sinks["bus"].state = "unavailable"
    running.runtime.status.sinks["bus"].error = "no broker"
    status, body = await running.http.ask("GET", "/readyz")
    assert status == 503
    assert body["reasons"] == [
        {
            "what": "sink bus",
            "why": "no broker",
            "runbook": "docs/runbook.md#a-sink-is-unavailable",
        }
    ]
