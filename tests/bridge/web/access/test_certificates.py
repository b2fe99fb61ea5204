"""Client certificates: whom they name, what their holders may do, and who gets no connection."""

import json
import re
import ssl
import subprocess
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import aiohttp
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.certificates import Identity, write
from support.prometheus import parse, value
from support.served_bridge import Side, announce, runtime
from support.served_bridge import config as served_config
from support.signing import Signer
from support.voting_bridge import polls

from bridge.config import Config
from bridge.journal.votes import votes
from bridge.web import CannotListen, serve
from bridge.web.access.certificates import Certificate, read, subject

PATH = "/api/v1/approvals"
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
ORDERS = "CN=orders,OU=shop,O=example"
BILLING = "CN=billing,OU=shop,O=example"
TOKENS = [{"name": "ops", "token": "ops-secret"}]
OPS = {"Authorization": "Bearer ops-secret"}


def identity(folder, name):
    return Identity(*(folder / f"{name}.{end}" for end in ("crt", "key", "pem")))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An authority with one below it, another authority, and clients of all three."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, other = trustme.CA(), trustme.CA()
    below = authority.create_child_ca()
    made = SimpleNamespace(folder=folder)
    for name, ca in (("ca", authority), ("below", below)):
        path = folder / f"{name}.pem"
        ca.cert_pem.write_to_path(str(path))
        setattr(made, name, path)
    who = {"organization_name": "example", "organization_unit_name": "shop"}
    for name, ca, common in (
        ("server", authority, "localhost"),
        ("orders", authority, "orders"),
        ("billing", authority, "billing"),
        ("lowly", below, "orders"),
        ("stranger", other, "orders"),
    ):
        one = identity(folder, name)
        write(one, ca.issue_cert("127.0.0.1", common_name=common, **who))
        setattr(made, name, one)
    return made


def tls(files, **more):
    keys = {"certificate": files.server.certificate, "key": files.server.key}
    return {**keys, "client_ca": files.ca, "client_certificates": "optional", **more}


@asynccontextmanager
async def open_polls(folder, files, *, http=None, **approvals):
    """A bridge at which certificates are asked for, with an event to vote on."""
    given = {"tls": tls(files), **(http or {})}
    async with polls(folder, http=given, **{"require": "any", **approvals}) as made:
        await announce(made.journal, EVENT_ID)
        yield made


def side(made, files, shown=None):
    """A client that shows this certificate, or none."""
    context = ssl.create_default_context(cafile=files.ca)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
    return session, Side(session, f"https://{made.served.served.http}")


async def ask(made, files, shown, method, path, **more):
    session, end = side(made, files, shown)
    async with session:
        return await end.ask(method, path, **more)


async def vote(made, files, shown, headers=None, **said):
    body = json.dumps({"eventId": EVENT_ID, **said})
    headers = {"Content-Type": "application/json", **(headers or {})}
    return await ask(made, files, shown, "POST", PATH, data=body, headers=headers)


async def standing(made):
    found = await made.journal.run(lambda store: votes(store, EVENT_ID, 1))
    return [(one.approver, one.verified, one.via) for one in found]


def audits(store):
    sql = "SELECT body FROM outbox WHERE type LIKE '%audited%'"
    return store.connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("entry", "approver"),
    [
        ({"approver": ORDERS, "via": "http"}, ORDERS),
        ({"approver": ORDERS}, ORDERS),
        ({"approver": "orders", "certificate": ORDERS}, "orders"),
    ],
    ids=["subject via http", "subject", "named"],
)
async def test_a_listed_subject_is_the_approver_and_verified(tmp_path, files, entry, approver):
    async with open_polls(tmp_path, files, allow=[entry]) as made:
        status, body = await vote(made, files, files.orders)
        assert (status, body["outcomes"][0]["outcome"]) == (202, "granted")
        assert await standing(made) == [(approver, True, "http")]
        assert made.told == [[EVENT_ID]]
        _, told = await ask(made, files, files.orders, "GET", f"{PATH}/{body['approvalId']}")
        assert told["outcomes"][-1]["data"]["approver"] == approver
        assert told["outcomes"][-1]["data"]["verified"] is True


@pytest.mark.parametrize(
    "allow",
    [
        [],
        [{"approver": ORDERS}],
        [{"approver": "billing", "via": "http"}],
        [{"approver": BILLING.lower()}],
        [{"approver": BILLING, "via": "control"}],
    ],
    ids=["nobody", "another", "its common name", "another case", "another door"],
)
async def test_a_subject_that_is_not_listed_may_read_and_not_vote(tmp_path, files, allow, caplog):
    async with open_polls(tmp_path, files, allow=allow) as made:
        for _ in range(3):
            status, problem = await vote(made, files, files.billing)
            assert (status, problem["reason"]) == (403, "unauthorized")
            assert problem["detail"] == f"The certificate of {BILLING} is not in approvals.allow."
        assert (await standing(made), made.told) == ([], [])
        status, found = await ask(made, files, files.billing, "GET", "/api/v1/events")
        assert (status, len(found["events"])) == (200, 1)
        _, text = await ask(made, files, files.billing, "GET", "/metrics")
        assert value(parse(text), "seb_certificates_refused_total") == 3
        assert value(parse(text), "seb_tokens_refused_total") == 0
        [(audit,)] = await made.journal.run(audits)
        assert json.loads(audit)["data"]["action"] == "certificate.refused"
        assert json.loads(audit)["data"]["actor"] == BILLING
    (said,) = [r for r in caplog.records if r.message == "http.certificate_refused"]
    assert (said.actor, said.count) == (BILLING, 1)


async def test_a_certificate_speaks_under_no_other_name(tmp_path, files):
    async with open_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        status, problem = await vote(made, files, files.orders, approver="orders")
        assert (status, problem["reason"]) == (403, "unauthorized")
        assert (await standing(made), made.told) == ([], [])
        assert (await vote(made, files, files.orders, approver=ORDERS))[0] == 202


async def test_a_certificate_has_the_rights_of_its_entry(tmp_path, files):
    entry = {"approver": "orders", "certificate": ORDERS, "decisions": ["hold"]}
    async with open_polls(tmp_path, files, allow=[entry]) as made:
        status, problem = await vote(made, files, files.orders)
        assert (status, problem["detail"]) == (
            403,
            "It does not count: orders may not say approve.",
        )
        assert (await vote(made, files, files.orders, decision="hold"))[0] == 202
        assert made.told == []


async def test_a_certificate_opens_no_door_but_those_of_readers_and_voters(tmp_path, files):
    async with open_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        for method, path in (
            ("POST", "/api/v1/sinks/bus/replay"),
            ("DELETE", "/api/v1/dead-letters/bus:1"),
            ("POST", "/api/v1/drills"),
        ):
            status, problem = await ask(made, files, files.orders, method, path)
            assert status == 403
            assert problem["detail"].endswith("this needs a token.")


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        ([], "This needs a client certificate."),
        (TOKENS, "This needs a token (Authorization: Bearer TOKEN) or a client certificate."),
    ],
)
async def test_without_a_certificate_nobody_reads_or_votes_but_by_token(
    tmp_path, files, tokens, sentence
):
    async with open_polls(tmp_path, files, http={"tls": tls(files), "tokens": tokens}) as made:
        for status, problem in (
            await vote(made, files, None),
            await ask(made, files, None, "GET", "/api/v1/events"),
            await ask(made, files, None, "GET", "/readyz"),
        ):
            assert (status, problem["detail"]) == (401, sentence)
        assert (await vote(made, files, None, OPS))[0] == (202 if tokens else 401)
        assert made.told == ([[EVENT_ID]] if tokens else [])


async def test_beside_a_certificate_the_token_decides(tmp_path, files):
    allow = [{"approver": ORDERS}, {"approver": "ops"}]
    http = {"tls": tls(files), "tokens": TOKENS}
    async with open_polls(tmp_path, files, http=http, allow=allow, dry_run=True) as made:
        wrong = {"Authorization": "Bearer wrong"}
        assert (await vote(made, files, files.orders, wrong))[0] == 401
        assert await standing(made) == []
        assert (await vote(made, files, files.orders, OPS))[0] == 202
        assert await standing(made) == [("ops", True, "http")]


async def test_a_tokens_name_says_nothing_of_a_certificate(tmp_path, files):
    allow = [{"approver": "boss", "token": ORDERS}, {"approver": BILLING}]
    http = {"tls": tls(files), "tokens": [{"name": ORDERS, "token": "x"}]}
    async with open_polls(tmp_path, files, http=http, allow=allow) as made:
        assert (await vote(made, files, files.orders))[0] == 403
        assert (await standing(made), made.told) == ([], [])


async def test_beside_a_certificate_the_signature_decides(tmp_path, files):
    signer = Signer("signer")
    allow = [{"approver": ORDERS}, signer.entry()]
    async with open_polls(tmp_path, files, allow=allow, dry_run=True) as made:
        given = signer.delivery(EVENT_ID)
        headers = {name: said.decode() for name, said in given.headers}
        headers["Content-Type"] = "application/json"
        for body, status in ((given.body + b" ", 401), (given.body, 202)):
            found = await ask(made, files, files.orders, "POST", PATH, data=body, headers=headers)
            assert found[0] == status
        assert await standing(made) == [("signer", True, "http")]


@pytest.mark.parametrize("shown", [None, "stranger"])
async def test_where_one_is_required_nobody_without_a_good_one_gets_a_connection(
    tmp_path, files, shown, caplog
):
    must = {"tls": tls(files, client_certificates="required"), "tokens": TOKENS}
    async with open_polls(tmp_path, files, http=must, allow=[{"approver": ORDERS}]) as made:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await vote(made, files, shown and getattr(files, shown), OPS)
        assert (await standing(made), made.told) == ([], [])
        assert (await vote(made, files, files.orders))[0] == 202
    assert [r.message for r in caplog.records if r.levelname in {"WARNING", "ERROR"}] == []


async def test_a_certificate_of_another_authority_gets_no_connection_where_one_is_optional(
    tmp_path, files
):
    async with open_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await vote(made, files, files.stranger)
        assert (await standing(made), made.told) == ([], [])


async def test_only_what_the_named_authority_signed_is_believed_not_what_those_above_it_did(
    tmp_path, files
):
    lower = {"tls": tls(files, client_ca=files.below)}
    async with open_polls(tmp_path, files, http=lower, allow=[{"approver": ORDERS}]) as made:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await vote(made, files, files.orders)
        assert (await vote(made, files, files.lowly))[0] == 202


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (Certificate(ORDERS, 0.0), "has expired"),
        (Certificate("", 2.0**33), "no subject of 1 to 512 characters"),
        (Certificate(f"CN={'x' * 510}", 2.0**33), "no subject of 1 to 512 characters"),
    ],
    ids=["expired", "nameless", "endless"],
)
async def test_a_certificate_that_is_over_or_names_nobody_opens_nothing(
    tmp_path, files, monkeypatch, shown, said
):
    async with open_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        monkeypatch.setattr("bridge.web.access.certificates.read", lambda _: shown)
        for status, problem in (
            await vote(made, files, files.orders),
            await ask(made, files, files.orders, "GET", "/api/v1/events"),
        ):
            assert status == 401
            assert said in problem["detail"]
        assert made.told == []


@pytest.mark.parametrize("content", [None, "", "-----BEGIN NOTHING-----"])
async def test_an_authority_that_cannot_be_read_is_an_error_in_one_sentence(
    tmp_path, files, content
):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    why = "No such file or directory" if content is None else "it holds no PEM certificate"
    settings = served_config(tmp_path, tls=tls(files, client_ca=path))
    async with runtime(settings) as running:
        with pytest.raises(CannotListen) as caught:
            async with serve(running, address=None):
                pass
    assert str(caught.value) == f"http.tls.client_ca: {path} cannot be used: {why}"


# --- the subject in one line ---------------------------------------------------------------------


def decoded(path):
    """As the TLS layer gives it to us."""
    return ssl._ssl._test_decode_cert(str(path))


def by_openssl(path):
    command = ["openssl", "x509", "-noout", "-subject", "-nameopt", "RFC2253", "-in", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return said.removeprefix("subject=").removesuffix("\n")


def certificate(path, *parts):
    """One that signs itself; each part is a set of attributes."""
    key = ec.generate_private_key(ec.SECP256R1())
    sets = [
        x509.RelativeDistinguishedName(
            [x509.NameAttribute(oid, text, _validate=False) for oid, text in part]
        )
        for part in parts
    ]
    name, now = x509.Name(sets), datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + timedelta(1))
    path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


CN, ORGANIZATION = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME


@pytest.mark.parametrize(
    "parts",
    [
        [[(ORGANIZATION, "example")], [(CN, "orders")]],
        [[(NameOID.COUNTRY_NAME, "DE")], [(ORGANIZATION, "a, b"), (CN, 'x+y"<>;\\=')]],
        [[(CN, " both ends ")], [(ORGANIZATION, " ")], [(NameOID.TITLE, "#1 # ")]],
        [[(CN, "Müller 日本 \U0001f600")]],
        [[(CN, "line\nand\x7fnull\x00end")]],
        [[(CN, "a,O=admin")], [(NameOID.DOMAIN_COMPONENT, "")]],
        [[(oid, "x")] for oid in (
            NameOID.STATE_OR_PROVINCE_NAME, NameOID.LOCALITY_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME,
            NameOID.DOMAIN_COMPONENT, NameOID.USER_ID, NameOID.SURNAME, NameOID.GIVEN_NAME,
            NameOID.STREET_ADDRESS, NameOID.SERIAL_NUMBER, NameOID.EMAIL_ADDRESS,
            NameOID.DN_QUALIFIER, NameOID.PSEUDONYM, NameOID.GENERATION_QUALIFIER,
            NameOID.POSTAL_CODE, NameOID.BUSINESS_CATEGORY, NameOID.ORGANIZATION_IDENTIFIER,
            NameOID.INITIALS, NameOID.UNSTRUCTURED_NAME, NameOID.JURISDICTION_LOCALITY_NAME,
            NameOID.JURISDICTION_STATE_OR_PROVINCE_NAME,
        )],
        [[(NameOID.JURISDICTION_COUNTRY_NAME, "DE")]],
    ],
)  # fmt: skip
def test_a_subject_is_written_as_openssl_and_nginx_write_it(tmp_path, parts):
    path = certificate(tmp_path / "one.pem", *parts)
    found = subject(decoded(path)["subject"])
    assert found == by_openssl(path)
    assert re.fullmatch(r"[ -~]*", found)
    allowed = {"approver": "a", "certificate": found}
    assert Config.model_validate({"approvals": {"allow": [allowed]}}).approvals.allow


def test_an_attribute_that_has_no_name_is_written_by_its_number(tmp_path):
    path = certificate(tmp_path / "one.pem", [(x509.ObjectIdentifier("1.2.3.4"), "x")], [(CN, "a")])
    assert subject(decoded(path)["subject"]) == "CN=a,1.2.3.4=x"


def test_a_certificate_without_a_subject_names_nobody(tmp_path):
    found = read(decoded(certificate(tmp_path / "one.pem")))
    assert found is not None
    assert not found.names_somebody
    assert found.until > datetime.now(UTC).timestamp()
    assert (read(None), read({})) == (None, None)
