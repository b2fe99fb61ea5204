"""What every sink must do, done by a shell script that keeps what it is fed."""

import json
import sys

import pytest
from support.cloudevents import batch
from support.sink_contract import Peer, SinkContract, arrived

from bridge.plugins.sinks import find_sink

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")

SCRIPT = """#!/bin/sh
cd "$KEPT" || exit 75
while [ -e stalled ]; do sleep 0.02; done
if [ -e "refused-$EVENT_CLOUDEVENT_ID" ]; then echo "not for me"; exit 65; fi
cat > "part-$$" && mv "part-$$" "$EVENT_CLOUDEVENT_ID.json" && echo "$EVENT_CLOUDEVENT_ID" >> arrived
"""


class Script(Peer):
    def __init__(self, folder):
        self.folder, self.program = folder, folder / "program"
        self.up_now()
        self.settings = find_sink("command").settings.model_validate(
            {"type": "command", "argv": [str(self.program)], "env": {"KEPT": str(folder)}}
        )

    def up_now(self):
        self.program.write_text(SCRIPT)
        self.program.chmod(0o700)

    async def received(self):
        order = self.folder / "arrived"
        ids = order.read_text().split() if order.exists() else []
        return [json.loads((self.folder / f"{name}.json").read_bytes()) for name in ids]

    async def down(self):
        self.program.unlink()

    async def up(self):
        self.up_now()

    async def stall(self):
        (self.folder / "stalled").touch()

    async def release(self):
        (self.folder / "stalled").unlink(missing_ok=True)

    async def refuse(self, ids):
        for name in ids:
            (self.folder / f"refused-{name}").touch()


class TestCommand(SinkContract):
    plugin = find_sink("command")
    keeps_a_thread = "Python 3.11 has one for each process, which ends a moment after it"

    @pytest.fixture
    async def peer(self, tmp_path):
        return Script(tmp_path)

    async def test_500_in_a_batch_all_arrive(self, peer):
        """The bridge never gives it more than `concurrency`; what is more waits for its turn."""
        assert peer.settings.largest_batch == 1
        sent = batch(40)
        assert await self.attempt(peer, sent) == [None] * 40
        await arrived(peer, sent)
