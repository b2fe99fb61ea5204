import asyncio
import json
import os
import socket
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import trustme
from aiohttp import web
from support.impostor import impostor
from support.located import located
from support.served_bridge import announce, bridge, config

from bridge.cli import client
from bridge.cli.client import RequestRefused, Unreachable, call
from bridge.cli.location import Location
from bridge.config import Config, Listen
from bridge.runtime.http_address import FILE, HttpAddress, address_of, write_address

EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"


def elsewhere(tmp_path, running, **http):
    """The configuration of a user without a control socket."""
    return config(tmp_path / "elsewhere", listen=str(running.served.http), **http)


async def test_the_control_socket_is_tried_first(tmp_path):
    async with bridge(config(tmp_path, tokens=["secret"])) as running:
        await announce(running.journal, EVENT)
        found = await call("GET", "/api/v1/events", where=located(running.runtime.config))
        assert [one["eventId"] for one in found["events"]] == [EVENT]
        assert (
            await call("POST", "/api/v1/sinks/bus/replay", where=located(running.runtime.config))
        )["sink"] == "bus"


@asynccontextmanager
async def eavesdropper():
    """A server of another user at a port that a bridge has left: its port, and what it heard."""
    heard: list[str | None] = []

    async def listen(request: web.Request) -> web.Response:
        heard.append(request.headers.get("Authorization"))
        return web.json_response({"detail": "This needs a token."}, status=401)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", listen)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield site.port, heard
    finally:
        await runner.cleanup()


@pytest.fixture
def deaf(monkeypatch):
    """As if the control socket were closed to this user."""
    monkeypatch.setattr(client, "_sockets", lambda *_: iter(()))


async def test_a_token_goes_to_the_address_that_the_running_bridge_wrote_down(tmp_path, deaf):
    async with bridge(config(tmp_path, tokens=["secret"])) as running:
        where = Location(state_dirs=(tmp_path,), listen=None)
        with pytest.raises(Unreachable):
            await call("GET", "/api/v1/events", where=where, token="secret")
        write_address(tmp_path, HttpAddress(f"http://{running.served.http}"))
        with pytest.raises(RequestRefused, match="This needs a token") as caught:
            await call("GET", "/api/v1/events", where=where)
        assert str(caught.value).endswith(" (--token or SEB_TOKEN)")
        assert await call("GET", "/api/v1/events", where=where, token="secret") == {
            "events": [],
            "next": None,
        }


async def test_a_token_goes_to_a_url_that_the_user_names(tmp_path):
    async with bridge(config(tmp_path, tokens=["secret"])) as running:
        where = Location(url=f"http://{running.served.http}")
        assert await call("GET", "/api/v1/events", where=where, token="secret") == {
            "events": [],
            "next": None,
        }


async def test_a_token_never_goes_to_whoever_listens_at_the_configured_port(tmp_path, deaf):
    async with eavesdropper() as (port, heard):
        where = Location(state_dirs=(tmp_path,), listen=Listen("127.0.0.1", port))
        with pytest.raises(RequestRefused, match=rf"give --url http://127\.0\.0\.1:{port}$"):
            await call("GET", "/api/v1/events", where=where, token="secret")
        assert heard == [None]


async def test_an_address_that_a_dead_bridge_left_gets_no_token(tmp_path, deaf):
    async with eavesdropper() as (port, heard):
        write_address(tmp_path, HttpAddress(f"http://127.0.0.1:{port}"))
        said = json.loads((tmp_path / FILE).read_text())
        (tmp_path / FILE).write_text(json.dumps({**said, "pid": 2**22 + 1}))
        where = Location(state_dirs=(tmp_path,), listen=Listen("127.0.0.1", port))
        with pytest.raises(RequestRefused):
            await call("GET", "/api/v1/events", where=where, token="secret")
        assert heard == [None]


async def test_a_socket_that_the_user_names_is_the_only_way(tmp_path):
    async with bridge(config(tmp_path)):
        for there in (tmp_path, tmp_path / "control.sock"):
            where = Location(socket=there)
            assert await call("GET", "/api/v1/events", where=where) == {"events": [], "next": None}
    with pytest.raises(Unreachable, match=r"\(no control socket at .*control\.sock\)"):
        await call("GET", "/", where=Location(socket=tmp_path / "control.sock"))


async def test_proxies_of_the_environment_are_not_used(tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with bridge(config(tmp_path)) as running:
        assert await call("GET", "/api/v1/events", where=located(elsewhere(tmp_path, running)))


async def test_a_missing_bridge_is_one_sentence_that_says_where_we_looked(tmp_path):
    settings = Config.model_validate({"state_dir": tmp_path, "http": {"listen": "127.0.0.1:9"}})
    with pytest.raises(Unreachable) as caught:
        await call("GET", "/", where=located(settings))
    assert str(caught.value) == (
        f"No bridge is running here (no control socket in {tmp_path}, nothing at 127.0.0.1:9)."
    )


async def test_a_socket_left_by_a_dead_bridge_is_not_a_bridge(tmp_path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "control.sock"))
    settings = Config.model_validate({"state_dir": tmp_path, "http": {"listen": None}})
    with pytest.raises(Unreachable, match=r"here \(no control socket in "):
        await call("GET", "/", where=located(settings))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
async def test_a_socket_without_permission_is_reported(tmp_path):
    async with bridge(config(tmp_path)) as running:
        (tmp_path / "control.sock").chmod(0)
        settings = running.runtime.config.model_copy(
            update={"http": running.runtime.config.http.model_copy(update={"listen": None})}
        )
        with pytest.raises(Unreachable, match="you do not have permission to open"):
            await call("GET", "/", where=located(settings))


def test_a_missing_permission_differs_from_a_missing_bridge():
    way = client.Way(
        "/run/control.sock", "no control socket", "http://bridge", aiohttp.BaseConnector
    )
    assert (
        client._absent(way, PermissionError())
        == "you do not have permission to open /run/control.sock"
    )
    assert client._absent(way, FileNotFoundError()) == "no control socket"


async def test_problems_are_shown_as_sentences(tmp_path):
    async with bridge(config(tmp_path)) as running:
        with pytest.raises(RequestRefused, match="has no scheduled event 'nothing'"):
            await call("GET", "/api/v1/events/nothing", where=located(running.runtime.config))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda: web.Response(text="<html>"), "was not answered by a bridge"),
        (lambda: web.Response(text="<html>", status=500), "status 500"),
        (lambda: web.json_response([], status=404), "status 404"),
        (
            lambda: web.Response(status=302, text="elsewhere", headers={"Location": "/"}),
            "not answered by a bridge",
        ),
    ],
    ids=["a page", "a failing page", "a strange document", "a redirect"],
)
async def test_something_else_at_the_address_is_not_taken_for_a_bridge(tmp_path, answer, sentence):
    async with impostor(answer) as port:
        settings = config(tmp_path, listen=f"127.0.0.1:{port}")
        with pytest.raises(RequestRefused, match=sentence):
            await call("GET", "/api/v1/events", where=located(settings))


async def test_a_broken_connection_is_reported(tmp_path):
    async def hang_up(_, writer):
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="did not answer properly"):
            await call("POST", "/x", where=located(config(tmp_path, listen=f"127.0.0.1:{port}")))


async def test_over_tls_only_the_configured_certificate_is_trusted(tmp_path):
    async def certificate(name):
        cert, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
        command += ["ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-days", "2"]
        command += ["-keyout", str(key), "-out", str(cert)]
        subprocess.run(command, check=True, capture_output=True)
        return {"certificate": cert, "key": key}

    own, foreign = await certificate("own"), await certificate("foreign")
    async with bridge(config(tmp_path, tls=own)) as running:
        good = elsewhere(tmp_path, running, tls=own)
        assert await call("GET", "/api/v1/events", where=located(good)) == {
            "events": [],
            "next": None,
        }
        guarded = await call("GET", "/api/v1/events", where=located(good), token="any")
        assert guarded == {"events": [], "next": None}, "verified https"
        for tls in (foreign, {**own, "certificate": tmp_path / "gone.pem"}):
            wrong = elsewhere(tmp_path, running, tls=tls)
            with pytest.raises(Unreachable):
                await call("GET", "/api/v1/events", where=located(wrong))


async def test_a_written_address_with_tls_is_trusted_by_its_certificate_alone(tmp_path, deaf):
    def server(name: str) -> dict[str, Path]:
        cert, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        issued = trustme.CA().issue_cert("elsewhere.example")
        issued.cert_chain_pems[0].write_to_path(str(cert))
        issued.private_key_pem.write_to_path(str(key))
        return {"certificate": cert, "key": key}

    own, foreign = server("own"), server("foreign")
    async with bridge(config(tmp_path, tls=own, tokens=["secret"])) as running:
        where, at = Location(state_dirs=(tmp_path,), listen=None), running.served.http
        assert at is not None
        write_address(tmp_path, address_of(at, own["certificate"]))
        assert await call("GET", "/api/v1/events", where=where, token="secret") == {
            "events": [],
            "next": None,
        }
        write_address(tmp_path, address_of(at, foreign["certificate"]))
        with pytest.raises(Unreachable):
            await call("GET", "/api/v1/events", where=where, token="secret")
