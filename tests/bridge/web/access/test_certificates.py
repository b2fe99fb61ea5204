"""The subject of a client certificate."""

import re
import ssl
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bridge.config import Config
from bridge.web.access.certificates import read, subject


def decoded(path):
    """The certificate as the TLS layer returns it."""
    return vars(ssl)["_ssl"]._test_decode_cert(str(path))


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


def test_a_certificate_without_a_subject_has_no_name(tmp_path):
    found = read(decoded(certificate(tmp_path / "one.pem")))
    assert found is not None
    assert not found.has_usable_subject
    assert found.until > datetime.now(UTC).timestamp()
    assert (read(None), read({})) == (None, None)
