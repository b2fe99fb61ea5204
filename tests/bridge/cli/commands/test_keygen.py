import json
import os
import stat
import sys

import pytest
import yaml
from support.command_line import parse

from bridge.cli.commands import keygen
from bridge.cli.voting.signer import Signer
from bridge.common.signatures import read_key, sign, verify
from bridge.config import load


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def made(*words):
        code = keygen.run(parse(keygen, *words))
        return code, *capsys.readouterr()

    return made


@pytest.mark.parametrize("words", [(), ("--hmac",)], ids=["ed25519", "hmac"])
def test_the_bridge_accepts_what_the_approver_signs(run, tmp_path, words):
    code, out, err = run("orders", *words)
    assert (code, err) == (0, "")
    private = (tmp_path / "orders.key").read_text()
    assert private.strip() not in out
    [entry] = yaml.safe_load(out)["approvals"]["allow"]
    assert entry["approver"] == "orders"
    key = next(iter(entry["keys"][0].values()))
    known = read_key(key) if isinstance(key, str) else read_key(private.strip())
    signed = sign([Signer.read(str(tmp_path / "orders.key")).key], "id", 7, b"body")
    assert verify([known], signed, b"body").timestamp == 7


@pytest.mark.parametrize("words", [("orders",), ("CN=a b", "--output", "k"), ("true", "--hmac")])
def test_the_printed_lines_are_a_valid_configuration(run, tmp_path, words):
    _, out, _ = run(*words)
    (tmp_path / "config.yaml").write_text(out)
    [rule] = load(tmp_path / "config.yaml", {}).approvals.allow
    assert rule.approver == words[0]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_only_the_owner_can_read_the_key_and_no_file_is_overwritten(run, tmp_path):
    before = os.umask(0)
    try:
        run("orders")
    finally:
        os.umask(before)
    file = tmp_path / "orders.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    code, out, err = run("orders", "--hmac")
    assert (code, out, file.read_text()) == (1, "", text)
    assert err == "seb: orders.key exists. A key may be in use, so it is never overwritten.\n"


def test_on_stdout_there_is_the_key_alone(run, tmp_path):
    code, out, err = run("orders", "--output", "-")
    assert code == 0
    assert read_key(out.strip()).private
    assert "whpk_" in err
    assert list(tmp_path.iterdir()) == []
    _, out, _ = run("orders", "--output", "-", "--json")
    assert read_key(json.loads(out)["private"]).private


@pytest.mark.parametrize("name", ["auto", "sink:bus", "", "a\nb", "a/b", ".."])
def test_a_name_that_cannot_be_used_is_refused(run, tmp_path, name):
    code, out, err = run(name)
    assert (code, out) == (2, "")
    assert err.startswith("seb: ")
    assert list(tmp_path.iterdir()) == []
