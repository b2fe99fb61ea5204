"""What the demo prints for those who want to join it."""

import shutil
import socket
from pathlib import Path

from support.served_bridge import bridge, config

from bridge.demo.invitation import console_link, free_port, invitation

LINK = "http://127.0.0.1:17245/#code=abc"


def test_the_wanted_port_is_used_unless_another_program_has_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port(port) not in {0, port}
    assert free_port(port) == port


def test_the_lines_can_be_pasted_as_they_are(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    lines = invitation(LINK, Path("/tmp/a demo/config.yaml")).splitlines()
    assert f"  {LINK}" in lines
    assert lines[-1] == "  export SEB_CONFIG='/tmp/a demo/config.yaml'"
    assert lines[-2].startswith("  export PATH=")


def test_without_a_console_there_is_no_link(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/seb")
    text = invitation(None, Path("/tmp/config.yaml"))
    assert "console" not in text
    assert "PATH" not in text


async def test_the_link_has_a_code_for_the_token_of_the_demo(tmp_path):
    tokens = [{"name": "you", "token": "secret"}]
    async with bridge(config(tmp_path, tokens=tokens)) as running:
        link = await console_link(tmp_path)
        assert link is not None
        assert link.startswith(f"{running.http.base}/#code=")
        body = {"code": link.partition("=")[2]}
        assert (await running.http.ask("POST", "/api/v1/session", json=body))[0] == 201


async def test_a_bridge_that_does_not_serve_http_yet_is_asked_again(tmp_path, monkeypatch):
    answers = iter([(True, None), (True, None), (True, LINK)])

    async def ask(_):
        return next(answers)

    monkeypatch.setattr("bridge.demo.invitation._ask", ask)
    assert await console_link(tmp_path) == LINK


async def test_a_bridge_without_that_token_gives_no_link(tmp_path):
    async with bridge(config(tmp_path)):
        assert await console_link(tmp_path) is None
