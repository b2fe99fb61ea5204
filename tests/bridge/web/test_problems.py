import pytest


async def test_an_unknown_event_is_a_problem_document(running):
    async with running.http.session.get(f"{running.http.base}/api/v1/events/none") as answer:
        assert answer.status == 404
        assert answer.content_type == "application/problem+json"
        body = await answer.json(content_type=None)
    assert body == {
        "title": "Not Found",
        "status": 404,
        "detail": "The journal has no scheduled event 'none'.",
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("PUT", "/api/v1/events", 405),
        ("POST", "/api/v1/stream", 405),
        ("GET", "/api/v1/dead-letters/%00", 404),
        ("GET", "/api/v1/dead-letters/bus:999999999999999999999999", 404),
        ("GET", "/api/v1/events/..%2f..%2fetc", 404),
    ],
)
async def test_what_is_not_there_is_a_problem_document(running, method, path, status):
    found, problem = await running.control.ask(method, path)
    assert (found, problem["status"]) == (status, status)
    assert problem["detail"].endswith(".")


async def test_a_body_that_is_too_large_is_refused(running):
    path = "/api/v1/sinks/bus/replay"
    status, problem = await running.control.ask("POST", path, data=b"x" * (64 * 1024 + 1))
    assert (status, problem["detail"]) == (413, "The body is larger than 64 KiB.")


async def test_an_internal_failure_reveals_no_details(running, caplog):
    running.runtime.status.sinks["bus"].since = "oops"
    status, problem = await running.http.ask("GET", "/api/v1/sinks")
    assert (status, problem["title"]) == (500, "Internal Server Error")
    assert "oops" not in str(problem)
    assert "TypeError" not in str(problem)
    assert "http.failed" in caplog.text


async def test_an_unreadable_journal_means_try_again_later(running):
    await running.journal.run(lambda store: store.connection.close())
    status, problem = await running.http.ask("GET", "/api/v1/dead-letters")
    assert status == 503
    assert problem["detail"] == "The journal cannot be used at the moment; try again."
