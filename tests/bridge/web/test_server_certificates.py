"""Which client certificates get a connection."""

import ssl

import aiohttp
import pytest
from support.client_certificates import OPS, ORDERS, TOKENS, certified_polls, standing, tls, vote
from support.served_bridge import config as served_config
from support.served_bridge import runtime

from bridge.web import CannotListen, serve


@pytest.mark.parametrize("shown", [None, "stranger"])
async def test_a_required_client_certificate_must_be_valid_to_connect(
    tmp_path, files, shown, caplog
):
    must = {"tls": tls(files, client_certificates="required"), "tokens": TOKENS}
    async with certified_polls(tmp_path, files, http=must, allow=[{"approver": ORDERS}]) as made:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await vote(made, files, shown and getattr(files, shown), OPS)
        assert (await standing(made), made.told) == ([], [])
        assert (await vote(made, files, files.orders))[0] == 202
    assert [r.message for r in caplog.records if r.levelname in {"WARNING", "ERROR"}] == []


async def test_a_certificate_of_another_authority_gets_no_connection_where_one_is_optional(
    tmp_path, files
):
    async with certified_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await vote(made, files, files.stranger)
        assert (await standing(made), made.told) == ([], [])


async def test_only_the_named_authority_is_trusted_not_those_above_it(tmp_path, files):
    lower = {"tls": tls(files, client_ca=files.below)}
    async with certified_polls(tmp_path, files, http=lower, allow=[{"approver": ORDERS}]) as made:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await vote(made, files, files.orders)
        assert (await vote(made, files, files.lowly))[0] == 202


@pytest.mark.parametrize("content", [None, "", "-----BEGIN NOTHING-----"])
async def test_an_authority_that_cannot_be_read_is_an_error_in_one_sentence(
    tmp_path, files, content
):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    why = (
        "No such file or directory" if content is None else "it does not contain a PEM certificate"
    )
    settings = served_config(tmp_path, tls=tls(files, client_ca=path))
    async with runtime(settings) as running:
        with pytest.raises(CannotListen) as caught:
            async with serve(running, address=None):
                pass
    assert str(caught.value) == f"http.tls.client_ca: {path} cannot be used: {why}"
