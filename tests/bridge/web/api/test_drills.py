"""Drills over HTTP: who may start one, the requests, and the answers."""

import json

import pytest
from support.served_bridge import announce, bridge, config
from support.world import ME, OTHER

from bridge.drills.runner import look
from bridge.journal import Settlement

PATH = "/api/v1/drills"
TOKENS = [
    {"name": "ops", "token": "ops-secret", "scopes": ["operate"]},
    {"name": "desk", "token": "desk-secret", "scopes": ["read", "approve"]},
    {"name": "eyes", "token": "eyes-secret", "scopes": ["read"]},
]
OPS = {"Authorization": "Bearer ops-secret"}
DESK = {"Authorization": "Bearer desk-secret"}
EYES = {"Authorization": "Bearer eyes-secret"}
REBOOT = {"eventType": "Reboot", "notice": "15m"}


@pytest.fixture
async def running(tmp_path):
    async with bridge(config(tmp_path, tokens=TOKENS)) as made:
        yield made


async def begin(made, **plan):
    status, report = await made.control.ask("POST", PATH, json={**REBOOT, **plan})
    assert status == 201, report
    return report


async def test_starting_a_drill_returns_a_report_that_says_it_is_running(running):
    async with running.http.session.post(
        running.http.base + PATH, json=REBOOT, headers=OPS
    ) as answer:
        report = await answer.json()
        assert (answer.status, answer.headers["Location"]) == (201, report["href"])
    assert (report["status"], report["passed"], report["begunBy"]) == ("Scheduled", None, "ops")
    assert report["resources"] == [ME]
    assert [(one["sink"], one["outcome"]) for one in report["sinks"]] == [
        ("bus", "waiting"),
        ("pager", "waiting"),
    ]
    status, again = await running.http.ask("GET", report["href"].lower(), headers=EYES)
    assert (status, again) == (200, report)


async def test_only_operators_may_start_and_stop_a_drill(running):
    for headers, status in ((EYES, 403), (DESK, 403), ({}, 401)):
        assert (await running.http.ask("POST", PATH, json=REBOOT, headers=headers))[0] == status
    report = await begin(running)
    for headers, status in ((EYES, 403), (DESK, 403), ({}, 401), (OPS, 200)):
        assert (await running.http.ask("DELETE", report["href"], headers=headers))[0] == status


async def test_only_one_drill_runs_and_a_second_request_names_it(running):
    first = await begin(running)
    status, problem = await running.control.ask("POST", PATH, json=REBOOT)
    assert (status, problem["eventId"], problem["href"]) == (409, first["eventId"], first["href"])
    assert problem["detail"].endswith("is already running. Only one can run at a time.")


async def test_a_drill_is_listed_as_pending_and_not_counted_in_metrics(running):
    await announce(running.journal, "REAL")
    report = await begin(running)
    _, body = await running.control.ask("GET", "/api/v1/events?pending=true")
    assert {one["eventId"]: one["drill"] for one in body["events"]} == {
        "REAL": False,
        report["eventId"]: True,
    }
    _, event = await running.control.ask("GET", f"/api/v1/events/{report['eventId']}")
    assert (event["drill"], event["pending"], len(event["history"])) == (True, True, 1)
    _, text = await running.control.ask("GET", "/metrics")
    assert "\nseb_pending_events 1\n" in text


async def test_stopping_it_answers_with_the_report_and_once(running):
    report = await begin(running)
    status, over = await running.control.ask("DELETE", report["href"])
    assert (status, over["status"], over["passed"]) == (200, "Canceled", False)
    status, problem = await running.control.ask("DELETE", report["href"])
    assert (status, problem["detail"]) == (409, f"The drill {report['eventId']} is over.")
    _, event = await running.control.ask("GET", f"/api/v1/events/{report['eventId']}")
    assert (event["drill"], event["pending"], event["status"]) == (True, False, "Canceled")
    _, listed = await running.control.ask("GET", PATH)
    assert [(one["eventId"], one["status"]) for one in listed["drills"]] == [
        (report["eventId"], "Canceled")
    ]


async def test_the_report_shows_what_the_sinks_did(running):
    report = await begin(running)
    _, event = await running.control.ask("GET", f"/api/v1/events/{report['eventId']}")
    told = event["history"][0]["cloudevent"]["id"]
    now = running.runtime.status.source.last_good.timestamp()
    await running.journal.settle("bus", [Settlement(told, "delivered")], now)
    await running.journal.settle("pager", [Settlement(told, "dead", "410")], now)
    _, found = await running.control.ask("GET", report["href"])
    assert [(one["outcome"], one["error"]) for one in found["sinks"]] == [
        ("delivered", None),
        ("dead", "410"),
    ]
    await look(running.runtime)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b'{"notice": "1s", "notice": "2s"}', "a name occurs twice"),
        (b"[]", "it must be a JSON object"),
        (b"{}", "eventType is required: one of Freeze"),
        (b'{"eventType": "Rebot"}', "eventType must be one of Freeze, Reboot"),
        (b'{"eventType": "Reboot", "notice": "2d"}', "notice must be from 1s to 24h"),
        (b'{"eventType": "Reboot", "notice": "soon"}', "notice 'soon' is not a duration"),
        (b'{"eventType": "Reboot", "when": "now"}', "when is not an option of a drill"),
        (b'{"eventType": "Reboot", "description": 5}', "description must be text"),
        (b'{"eventType": "Reboot", "resources": "vm-0"}', "resources must be a list"),
        (b'{"eventType": "Reboot", "resources": ["a", ""]}', "resources.1 must be one line"),
        (b'{"eventType": "Reboot", "notice": "4s"}', "longer than approvals.margin, 5s."),
        (json.dumps({**REBOOT, "resources": [OTHER]}).encode(), f"must be this VM, {ME}"),
    ],
)
async def test_an_impossible_plan_is_refused_with_the_reason(running, body, why):
    status, problem = await running.control.ask("POST", PATH, data=body)
    assert status == 400
    assert why in problem["detail"]
    assert (await running.control.ask("GET", PATH))[1] == {"drills": []}


async def test_an_unknown_drill_is_not_found(running):
    for method in ("GET", "DELETE"):
        status, problem = await running.control.ask(method, f"{PATH}/none")
        assert status == 404
        assert "has no drill 'NONE'" in problem["detail"]
    await announce(running.journal, "REAL")
    assert (await running.control.ask("DELETE", f"{PATH}/REAL"))[0] == 404


async def test_without_a_writable_journal_no_drill_starts_or_stops(running):
    report = await begin(running)
    running.journal.trouble = "the disk is full"
    for method, path in (("POST", PATH), ("DELETE", report["href"])):
        status, problem = await running.control.ask(method, path, json=REBOOT)
        assert (status, "cannot be written" in problem["detail"]) == (503, True)
    running.journal.trouble = None


async def test_the_paths_are_listed(running):
    _, index = await running.control.ask("GET", "/api/v1")
    assert {f"{method} {PATH}" for method in ("GET", "POST")} < set(index["paths"])
