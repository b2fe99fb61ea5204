"""The programs in `examples/signing`: what they send is signed as it should be, and a bridge takes it."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.bridge import Azure
from support.cloudevents import STATE
from support.debian import tool
from support.example_process import EXAMPLES, ran
from support.kafka_broker import Broker
from support.kafka_stage import Topic, headers
from support.served_bridge import ServedBridge, announce, bridge
from support.signing import Signer
from support.webhook_receiver import receiving
from support.world import ME

from bridge.approvals.service import ApprovalService
from bridge.common.signatures import Mismatch, verify
from bridge.config import Config
from bridge.journal.votes import votes

FOLDER = EXAMPLES / "signing"
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
HMAC, ED25519 = Signer("orders", ed25519=False), Signer("orders")
WAYS = {
    "python-hmac": (sys.executable, "approve_hmac.py", HMAC),
    "python-ed25519": (sys.executable, "approve_ed25519.py", ED25519),
    "node-hmac": ("node", "approve.mjs", HMAC),
    "node-ed25519": ("node", "approve.mjs", ED25519),
    "shell-ed25519": ("sh", "approve.sh", ED25519),
}
PACKAGES = {"node": "nodejs", "curl": "curl", "openssl": "openssl"}


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> tuple[list[str | Path], Signer]:
    program, script, signer = WAYS[request.param]
    for needed in {"node": ["node"], "sh": ["openssl", "curl"]}.get(program, []):
        tool(needed, PACKAGES[needed])
    return [program, FOLDER / script], signer


@contextlib.asynccontextmanager
async def voting_bridge(folder: Path, signer: Signer) -> AsyncIterator[ServedBridge]:
    """A bridge that takes votes of this signer, and no token."""
    approvals = {"allow": [signer.entry()], "dry_run": True}
    http = {"listen": "127.0.0.1:0"}
    settings = {"state_dir": folder, "http": http, "approvals": approvals}
    async with bridge(Config.model_validate(settings)) as made:
        ApprovalService(made.runtime, Azure())
        await announce(made.journal, EVENT_ID)
        yield made


async def test_a_signature_is_right_for_what_was_sent_and_for_nothing_else(way):
    command, signer = way
    async with receiving() as receiver:
        code, said = await ran(
            *command, EVENT_ID, ME, receiver.url, SEB_KEY=signer.secret, SEEN=STATE
        )
    assert code == 0, said
    [got] = receiver.got
    assert verify([signer.key], dict(got.headers), got.body).id == got.headers["webhook-id"]
    assert json.loads(got.body) == {"eventId": EVENT_ID, "resource": ME, "seen": STATE}
    with pytest.raises(Mismatch):
        verify([signer.key], dict(got.headers), got.body + b" ")


async def test_a_bridge_takes_it_and_refuses_who_has_another_key(way, tmp_path: Path):
    command, signer = way
    stranger = Signer("orders", seed=2, ed25519=signer is ED25519)
    async with voting_bridge(tmp_path, signer) as made:
        where = [EVENT_ID, ME, f"{made.http.base}/api/v1/approvals"]
        code, said = await ran(*command, *where, SEB_KEY=stranger.secret)
        assert code != 0
        assert "none of the known keys made its signature" in said
        assert "Traceback" not in said
        code, said = await ran(*command, *where, SEB_KEY=signer.secret)
        assert code == 0, said
        assert json.loads(said)["outcomes"][0]["outcome"] == "recorded"
        [vote] = await made.journal.run(lambda store: votes(store, EVENT_ID, 1))
    assert (vote.approver, vote.verified, vote.resource) == ("orders", True, ME)


async def test_the_shell_writes_it_to_kafka_too(kafka: Broker):
    tool("kcat")
    topic = Topic(kafka.bootstrap, await kafka.topic())
    script, place = FOLDER / "approve.sh", f"{kafka.bootstrap}/{topic.name}"
    code, said = await ran("sh", script, EVENT_ID, ME, place, SEB_KEY=ED25519.secret)
    assert code == 0, said
    [record] = await topic.records()
    verify([ED25519.key], headers(record), record["payload"].encode())


def test_each_is_short():
    for program in FOLDER.iterdir():
        lines = program.read_text(encoding="utf-8").splitlines()
        assert program.suffix == ".md" or len(lines) <= 25, program.name
