import asyncio
import os
import socket
import ssl
import subprocess
import time
import warnings
from contextlib import AsyncExitStack

import aiohttp
import pytest
from support.guarded_bridge import raw
from support.served_bridge import bridge, config, runtime

from bridge.config import Config, HttpSettings
from bridge.platform import control_address
from bridge.web import CannotListen, serve, server


@pytest.fixture
def taken():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.fixture
def certificate(tmp_path):
    """A certificate for localhost, with its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-days", "2", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return {"certificate": cert, "key": key}


async def test_a_configured_address_that_is_taken_is_an_error_in_one_sentence(tmp_path, taken):
    async with runtime(config(tmp_path, listen=f"127.0.0.1:{taken}")) as running:
        with pytest.raises(CannotListen) as caught:
            async with serve(running, address=None):
                pass
    cause = caught.value.__cause__
    assert isinstance(cause, OSError)
    words = os.strerror(cause.errno or 0)
    assert str(caught.value) == f"http.listen: cannot listen on 127.0.0.1:{taken}: {words}"


async def test_a_probes_address_that_is_taken_is_an_error_too(tmp_path, taken):
    async with runtime(config(tmp_path, probes_listen=f"127.0.0.1:{taken}")) as running:
        with pytest.raises(CannotListen, match=r"http\.probes_listen"):
            async with serve(running, address=None):
                pass


async def test_a_default_address_that_is_taken_is_a_warning(tmp_path, taken, caplog):
    settings = Config.model_validate({"state_dir": tmp_path})
    assert settings.http.listen is not None
    default = settings.http.listen._replace(port=taken)
    http = HttpSettings.model_construct(
        _fields_set=set(), **{**dict(settings.http), "listen": default}
    )
    settings = settings.model_copy(update={"http": http})
    assert settings.http.listen_is_default
    address = control_address(tmp_path)
    async with runtime(settings) as running, serve(running, address=address) as served:
        assert served.http is None
        assert served.control is not None
    assert "http.unavailable" in caplog.text


async def test_http_can_be_off(tmp_path):
    settings, address = config(tmp_path, listen=None), control_address(tmp_path)
    async with runtime(settings) as running, serve(running, address=address) as served:
        assert served.http is None


async def test_a_bridge_runs_without_a_control_socket(tmp_path, caplog):
    (tmp_path / "control.sock").write_text("in the way")
    settings, address = config(tmp_path), control_address(tmp_path)
    async with runtime(settings) as running, serve(running, address=address) as served:
        assert served.control is None
        assert served.http is not None
    assert "control.unavailable" in caplog.text


async def test_a_failed_start_leaves_nothing_behind(tmp_path, taken):
    address = control_address(tmp_path)
    async with runtime(config(tmp_path, probes_listen=f"127.0.0.1:{taken}")) as running:
        with pytest.raises(CannotListen):
            async with serve(running, address=address):
                pass
    assert not (tmp_path / "control.sock").exists()


async def test_the_same_address_can_be_served_again_immediately(tmp_path):
    async with runtime(config(tmp_path)) as running:
        async with serve(running, address=control_address(tmp_path)) as served:
            pass
        running.config = config(tmp_path, listen=str(served.http))
        async with serve(running, address=control_address(tmp_path)) as again:
            assert again == served


async def test_stopping_ends_streams_in_order_and_does_not_wait_for_readers(tmp_path):
    async with runtime(config(tmp_path)) as running, aiohttp.ClientSession() as session:
        began = time.monotonic()
        async with serve(running, address=None) as served:
            answer = await session.get(f"http://{served.http}/api/v1/stream")
            reading = asyncio.create_task(answer.read())
            await asyncio.sleep(0)
        assert await reading == b"retry: 2000\nevent: connected\nid: 0\ndata: {}\n\n"
        assert time.monotonic() - began < 20


async def test_tls_1_2_is_the_oldest_version(tmp_path, certificate):
    async with bridge(config(tmp_path, tls=certificate)) as running:
        trust = ssl.create_default_context(cafile=certificate["certificate"])
        at = running.served.http
        assert at is not None
        url = f"https://localhost:{at.port}/readyz"
        async with running.http.session.get(url, ssl=trust) as answer:
            assert answer.status == 200
        old = ssl.create_default_context(cafile=certificate["certificate"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((aiohttp.ClientConnectorError, ssl.SSLError)):
            await running.http.session.get(url, ssl=old)


async def test_a_certificate_that_is_missing_or_wrong_is_an_error_in_one_sentence(
    tmp_path, certificate
):
    gone = {**certificate, "certificate": tmp_path / "gone.pem"}
    swapped = {"certificate": certificate["key"], "key": certificate["certificate"]}
    for tls in (gone, swapped):
        async with runtime(config(tmp_path, tls=tls)) as running:
            with pytest.raises(CannotListen, match=r"http\.tls: .* cannot be used: "):
                async with serve(running, address=None):
                    pass


async def test_a_key_with_a_passphrase_is_refused_without_a_prompt(tmp_path, certificate):
    locked = tmp_path / "locked.pem"
    command = ["openssl", "ec", "-in", str(certificate["key"]), "-aes128", "-passout", "pass:x"]
    subprocess.run([*command, "-out", str(locked)], check=True, capture_output=True)
    async with runtime(config(tmp_path, tls={**certificate, "key": locked})) as running:
        with pytest.raises(CannotListen, match="use a key without one"):
            async with serve(running, address=None):
                pass


@pytest.mark.parametrize("length", ["Content-Length: 9", "Transfer-Encoding: chunked"])
async def test_a_connection_dropped_in_mid_body_is_not_logged(guarded, caplog, length):
    head = f"POST /api/v1/sinks/bus/replay HTTP/1.1\r\nHost: localhost\r\n{length}\r\n"
    at = guarded.served.http
    _, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(f"{head}Authorization: Bearer ops-secret\r\n\r\n9\r\n{{".encode())
    await writer.drain()
    await asyncio.sleep(0.05)  # so that the bridge waits for the rest when the connection goes dead
    writer.transport.abort()
    await asyncio.sleep(0.05)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"",
    ],
)
async def test_garbage_is_refused_quietly_and_the_next_request_is_served(running, data, caplog):
    answer = await raw(running, data)
    assert answer == b"" or answer.startswith((b"HTTP/1.0 4", b"HTTP/1.1 4"))
    assert b"Traceback" not in answer
    assert caplog.records == []
    assert (await running.http.ask("GET", "/readyz"))[0] == 200


async def closed(reader: asyncio.StreamReader) -> bool:
    """Whether the bridge closed the connection without a word; a reset says the same."""
    try:
        return await asyncio.wait_for(reader.read(), 9) == b""
    except ConnectionError:
        return True


async def test_each_address_has_places_of_its_own(tmp_path):
    settings = config(tmp_path, probes_listen="127.0.0.1:0", max_connections=2)
    async with bridge(settings) as running, AsyncExitStack() as stack:
        at = running.served.probes
        assert at is not None
        for _ in range(2):
            _, writer = await asyncio.open_connection(at.host, at.port)
            stack.callback(writer.close)
        reader, writer = await asyncio.open_connection(at.host, at.port)
        stack.callback(writer.close)
        assert await closed(reader)
        assert (await running.http.ask("GET", "/livez"))[0] == 200
        assert (await running.control.ask("GET", "/livez"))[0] == 200


async def test_the_control_socket_has_32_places_whatever_http_has(tmp_path):
    address = control_address(tmp_path)
    async with bridge(config(tmp_path, max_connections=1)) as running, AsyncExitStack() as stack:
        for _ in range(32):
            _, writer = await asyncio.open_unix_connection(address)
            stack.callback(writer.close)
        reader, writer = await asyncio.open_unix_connection(address)
        stack.callback(writer.close)
        assert await closed(reader)
        assert (await running.http.ask("GET", "/livez"))[0] == 200


async def test_no_address_takes_more_than_a_quarter_of_the_files_that_may_be_open(monkeypatch):
    monkeypatch.setattr(server, "open_files", lambda: 100)
    assert server._places("http.listen", 256).most == 25
    assert server._places("http.listen", 7).most == 7
