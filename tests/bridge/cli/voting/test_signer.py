"""A key in a file, and what it signs."""

import base64
import json

import pytest
from support.signing import Signer

from bridge.cli import main
from bridge.cli.voting import signer
from bridge.common.signatures import Mismatch, verify

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
ORDERS = Signer("orders", seed=1)
NOW = 1_794_744_000.0
PRIVATE = f"whsk_{base64.b64encode(bytes([1]) * 32).decode()}"


@pytest.fixture
def key(tmp_path):
    """A file with the private key of an approver."""
    file = tmp_path / "orders.key"
    file.write_text(f"{PRIVATE}\n")
    return str(file)


@pytest.mark.parametrize("content", ["", "secret", "whsec_", "whsec_???", "ümlaut", "PUBLIC"])
def test_a_file_without_a_signing_key_is_reported(tmp_path, capsys, content):
    file = tmp_path / "key"
    file.write_text(ORDERS.entry()["keys"][0]["ed25519"] if content == "PUBLIC" else content)
    assert main(["approve", FIRST, "--sign-with", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"seb: --sign-with {file}: ")
    assert "secret" not in said


def test_what_is_signed_is_verified_by_the_public_key(key):
    made = signer.Signer.read(key)
    headers = made.headers("m-1", NOW, b"body")
    given = [(name, said.encode()) for name, said in headers.items()]
    assert verify([ORDERS.key], given, b"body")
    with pytest.raises(Mismatch):
        verify([ORDERS.key], given, b"another")


def test_without_headers_the_line_holds_the_headers_and_the_signed_text(key):
    made = signer.Signer.read(key)
    text = '{"a": 1}'
    line = made.wrapped("m-1", NOW, text.encode())
    assert line.endswith("}\n")
    headers = made.headers("m-1", NOW, text.encode())
    assert json.loads(line) == {**headers, "payload": text}


def test_a_key_on_the_command_line_is_not_read_and_not_repeated():
    with pytest.raises(ValueError, match="the name of a file") as caught:
        signer.Signer.read(PRIVATE)
    assert PRIVATE not in str(caught.value)
