"""Half a minute of a fixed program against three bridges and all sinks; `make soak` has ten minutes."""

from pathlib import Path

import pytest
from soak import conductor, program
from soak.judge import verdicts
from soak.page import page
from soak.report import text

SEED = 20261117


@pytest.mark.timeout(240)
async def test_half_a_minute_of_faults_breaks_no_guarantee(tmp_path: Path):
    play = program.write(SEED, 20, nodes=1)
    ledger = await conductor.run(play, tmp_path, print)
    found = verdicts(ledger)
    print(text(ledger, found))
    assert {name: breaches for name, breaches in found.items() if breaches} == {}
    assert len({fault.kind for fault in ledger.faults if not fault.note}) > 10
    assert ledger.posts
    assert page(ledger, found).startswith("<!DOCTYPE html>")
