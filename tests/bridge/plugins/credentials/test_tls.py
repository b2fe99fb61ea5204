"""TLS to a server, with real certificates and real handshakes."""

import asyncio
import os
import shutil
import ssl

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import BaseModel, ValidationError
from support.certificates import Certificates, Identity, issue

from bridge.plugins import TLS, TLSOption, Unavailable


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


def tls(**keys) -> TLS:
    return TLS.model_validate({key: str(value) for key, value in keys.items()})


async def handshake(client: ssl.SSLContext, server: Identity, **options) -> str | None:
    """Do a real handshake; return the client certificate's name as the server sees it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    if "authority" in options:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(options["authority"])
    if "newest" in options:
        context.maximum_version = options["newest"]
    seen: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown = writer.get_extra_info("peercert") or {}
        names = [value for _, value in shown.get("subjectAltName", ())]
        seen.set_result(names[0] if names else None)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        try:
            return await asyncio.wait_for(seen, 5)
        finally:
            writer.transport.abort()


async def test_a_server_whose_authority_is_trusted_is_accepted(certificates):
    context = tls(ca=certificates.authority).context()
    assert await handshake(context, certificates.server) is None


async def test_the_system_does_not_know_our_authority(certificates):
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(TLS().context(), certificates.server)


async def test_a_server_with_another_name_is_refused(certificates):
    context = tls(ca=certificates.authority).context()
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        await handshake(context, certificates.wrong_host_server)


async def test_an_expired_server_is_refused(certificates):
    context = tls(ca=certificates.authority).context()
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        await handshake(context, certificates.expired_server)


async def test_insecure_accepts_any_server(certificates):
    assert await handshake(TLS(insecure=True).context(), certificates.expired_server) is None


async def test_a_server_with_only_old_tls_is_refused(certificates):
    context = tls(ca=certificates.authority).context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    with pytest.warns(DeprecationWarning, match="TLSv1_1"), pytest.raises(OSError):
        await handshake(context, certificates.server, newest=ssl.TLSVersion.TLSv1_1)


@pytest.mark.parametrize("in_one_file", [True, False])
async def test_our_own_certificate_is_shown(certificates, in_one_file):
    mine = certificates.client
    own = {"certificate": mine.both} if in_one_file else vars(mine)
    own = {key: value for key, value in own.items() if key != "both"}
    context = tls(ca=certificates.authority, **own).context()
    seen = await handshake(context, certificates.server, authority=certificates.authority)
    assert seen == "bridge-client"


def test_session_keys_are_not_written_to_the_file_in_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert TLS().context().keylog_filename is None


def test_the_context_stays_the_same_until_a_file_changes(certificates, tmp_path):
    ca = tmp_path / "ca.pem"
    shutil.copy(certificates.authority, ca)
    first, second = tls(ca=ca), tls(ca=ca)
    before = first.context()
    assert first.context() is before
    assert second.context() is before
    shutil.copy(certificates.other_authority, ca)
    assert first.context() is not before
    assert first == second


def test_a_file_that_is_exchanged_for_one_of_the_same_age_and_size_has_changed(
    certificates, tmp_path
):
    ca, other = tmp_path / "ca.pem", tmp_path / "other.pem"
    for path in (ca, other):
        shutil.copy(certificates.authority, path)
        os.utime(path, (1, 1))
    before = tls(ca=ca).context()
    other.replace(ca)
    assert tls(ca=ca).context() is not before


async def test_a_rotated_certificate_is_shown_from_then_on(certificates, tmp_path):
    mine = Identity(tmp_path / "c.pem", tmp_path / "k.pem", tmp_path / "both.pem")
    shutil.copy(certificates.other_client.certificate, mine.certificate)
    shutil.copy(certificates.other_client.key, mine.key)
    settings = tls(ca=certificates.authority, certificate=mine.certificate, key=mine.key)
    settings.context()
    shutil.copy(certificates.client.certificate, mine.certificate)
    with pytest.raises(Unavailable, match="does not match the certificate"):
        settings.context()
    shutil.copy(certificates.client.key, mine.key)
    seen = await handshake(
        settings.context(), certificates.server, authority=certificates.authority
    )
    assert seen == "bridge-client"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Unavailable, match=r"no-such\.pem cannot be read: No such file"):
        tls(ca=tmp_path / "no-such.pem").context()
    with pytest.raises(Unavailable, match=r"no-such\.pem cannot be read: No such file"):
        tls(certificate=tmp_path / "no-such.pem").context()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read_is_named(certificates, tmp_path):
    ca = tmp_path / "ca.pem"
    shutil.copy(certificates.authority, ca)
    ca.chmod(0)
    with pytest.raises(Unavailable, match="cannot be read: Permission denied"):
        tls(ca=ca).context()


def test_a_directory_instead_of_a_file_is_refused(tmp_path):
    with pytest.raises(Unavailable, match="cannot be read: Is a directory"):
        tls(ca=tmp_path).context()


def test_files_with_other_content_are_named(certificates, tmp_path):
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    with pytest.raises(Unavailable, match=r"junk\.pem contains no PEM certificate"):
        tls(ca=junk).context()
    with pytest.raises(
        Unavailable, match=r"junk\.pem does not contain a PEM certificate and its key"
    ):
        tls(certificate=junk).context()
    with pytest.raises(Unavailable, match="are not a PEM certificate and its key"):
        tls(certificate=certificates.client.certificate, key=junk).context()


def test_a_key_of_another_certificate_is_refused(certificates):
    with pytest.raises(Unavailable, match=r"other-client\.key does not match"):
        tls(
            certificate=certificates.client.certificate, key=certificates.other_client.key
        ).context()


@pytest.fixture
def encrypted(certificates, tmp_path):
    key = load_pem_private_key(certificates.client.key.read_bytes(), None)
    path = tmp_path / "encrypted.key"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open"))
    )
    return path


async def test_an_encrypted_key_is_decrypted_with_its_password(certificates, encrypted):
    own = {"certificate": certificates.client.certificate, "key": encrypted}
    context = tls(ca=certificates.authority, **own, key_password="open").context()
    seen = await handshake(context, certificates.server, authority=certificates.authority)
    assert seen == "bridge-client"


def test_an_encrypted_key_without_its_password_is_refused_without_a_prompt(
    certificates, encrypted, tmp_path
):
    own = {"certificate": certificates.client.certificate, "key": encrypted}
    with pytest.raises(Unavailable, match="is encrypted, so it needs key_password"):
        tls(**own).context()
    with pytest.raises(Unavailable, match="key_password does not decrypt the key"):
        tls(**own, key_password="wrong").context()
    keys = {key: str(value) for key, value in own.items()}
    nowhere = {"file": str(tmp_path / "nowhere")}
    with pytest.raises(Unavailable, match=r"key_password cannot be read from .*nowhere"):
        TLS.model_validate({**keys, "key_password": nowhere}).context()


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"key": "k.pem"}, "key has no effect without certificate"),
        ({"key_password": "x"}, "key_password has no effect without certificate"),
        ({"ca": "ca.pem", "insecure": True}, "checks nothing, so ca has no effect"),
        ({"verify": False}, "verify"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(keys, why):
    with pytest.raises(ValidationError, match=why):
        TLS.model_validate(keys)


class Far(BaseModel):
    tls: TLSOption = None


@pytest.mark.parametrize(
    ("given", "meant"),
    [(True, TLS()), (False, None), (None, None), ({"insecure": True}, TLS(insecure=True))],
)
def test_a_sink_takes_tls_as_a_switch_or_a_mapping(given, meant):
    assert Far.model_validate({"tls": given}).tls == meant
    assert {"type": "boolean"} in Far.model_json_schema()["properties"]["tls"]["anyOf"]
