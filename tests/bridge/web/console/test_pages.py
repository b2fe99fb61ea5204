"""The files of the console: served without a log-in, with a strict policy, and nothing else."""

from pathlib import Path

import pytest

from bridge.web.console import pages

FOLDER = Path(pages.__file__).parent


async def fetch(side, path, **headers):
    async with side.session.get(side.base + path, headers=headers) as answer:
        return answer.status, answer.headers, await answer.read()


@pytest.mark.parametrize("path", ["/", "/console/index.html"])
async def test_the_console_needs_no_token(guarded, path):
    status, headers, body = await fetch(guarded.http, path)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body == (FOLDER / "index.html").read_bytes()


async def test_every_file_of_the_folder_is_served_with_its_type(guarded):
    found = [path for path in FOLDER.rglob("*") if path.suffix.lstrip(".") in pages._TYPES]
    assert found
    for path in found:
        name = path.relative_to(FOLDER).as_posix()
        status, headers, body = await fetch(guarded.http, f"/console/{name}")
        assert (status, body) == (200, path.read_bytes()), name
        assert headers["Content-Type"] == pages._TYPES[path.suffix[1:]]
        assert headers["X-Content-Type-Options"] == "nosniff"


async def test_a_page_may_run_only_our_own_files(guarded):
    _, headers, _ = await fetch(guarded.http, "/")
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(
        policy.split("; ")
    )
    assert headers["Referrer-Policy"] == "no-referrer"


async def test_an_unchanged_page_is_not_sent_again(guarded):
    _, headers, _ = await fetch(guarded.http, "/")
    assert headers["Cache-Control"] == "no-cache"
    again, headers, body = await fetch(guarded.http, "/", **{"If-None-Match": headers["ETag"]})
    assert (again, body) == (304, b"")
    assert "Content-Security-Policy" in headers
    assert (await fetch(guarded.http, "/", **{"If-None-Match": '"old"'}))[0] == 200


@pytest.mark.parametrize(
    "name",
    ["pages.py", "__init__.py", "nothing.js", "../pages.py", "%2e%2e/server.py", "..%2fserver.py"],
)
async def test_nothing_but_the_files_of_the_console_is_served(guarded, name):
    assert (await fetch(guarded.http, f"/console/{name}"))[0] in {401, 404}


async def test_a_rebound_name_gets_no_page(guarded):
    assert (await fetch(guarded.http, "/", Host="evil.example"))[0] == 421


async def test_the_page_opens_no_other_path_and_no_other_method(guarded):
    assert (await fetch(guarded.http, "/api/v1"))[0] == 401
    for path in ("/", "/console/index.html"):
        async with guarded.http.session.post(guarded.http.base + path) as answer:
            assert answer.status == 401


async def test_the_control_socket_serves_it_too_and_the_probes_do_not(guarded):
    assert (await fetch(guarded.control, "/"))[0] == 200
    assert (await fetch(guarded.probes, "/"))[0] == 404
