"""A batch as runs of a command: what each is given, and how many run at once."""

import sys

import pytest
from support.cloudevents import make
from support.command_runs import outcome, outcomes, shell

from bridge.plugins import Unavailable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


async def test_it_gets_the_format_that_is_asked_for(tmp_path, monkeypatch):
    path, event = tmp_path / "got", make()
    assert await outcomes(shell(f"cat > {path}", format="cloudevents"), event) == [None]
    assert path.read_bytes() == event.body


async def test_secrets_are_read_again_for_each_run_and_never_repeated(tmp_path):
    token = tmp_path / "token"
    token.write_text("first-secret\n")
    settings = shell('echo "$TOKEN $STAGE"; cat > /dev/null; exit 1', env={"TOKEN": {"file": str(token)}, "STAGE": "prod"})  # fmt: skip
    assert str(await outcome(settings)) == "exit code 1: *** prod"
    token.write_text("another-secret\n")
    seen = shell('[ "$TOKEN" = another-secret ]', env={"TOKEN": {"file": str(token)}})
    assert await outcome(seen) is None
    token.unlink()
    with pytest.raises(Unavailable, match=r"env: cannot read a file: .*token"):
        await outcome(settings)


async def test_as_many_run_at_the_same_time_as_allowed(tmp_path):
    meet = f"""touch {tmp_path}/$EVENT_CLOUDEVENT_ID
    while [ $(ls {tmp_path} | wc -l) -lt 3 ]; do sleep 0.01; done"""
    assert await outcomes(shell(meet, concurrency=3), make(1), make(2), make(3)) == [None] * 3
    alone = f"mkdir {tmp_path}/busy || exit 1; sleep 0.02; rmdir {tmp_path}/busy"
    assert await outcomes(shell(alone), make(1), make(2), make(3)) == [None] * 3
