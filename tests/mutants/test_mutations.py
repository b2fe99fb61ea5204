"""Mutations fit the code as it is, and a mutation that no longer fits is an error."""

from dataclasses import replace
from pathlib import Path

import pytest
from model.worlds import WORLDS
from mutants.__main__ import tried
from mutants.mutations import MUTATIONS, Outdated

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.breaks)
def test_each_mutation_fits_the_code(mutation, tmp_path):
    copy = tmp_path / mutation.path
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / mutation.path).read_text())
    mutation.apply(tmp_path)
    compile(copy.read_text(), copy, "exec")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.breaks)
def test_the_check_of_each_mutation_exists(mutation):
    path, _, name = mutation.caught_by.partition("::")
    if name:
        assert f"def {name}(" in (ROOT / path).read_text()
    else:
        assert path in {world.name for world in WORLDS}


def test_a_mutation_that_no_longer_fits_survives_and_says_why(tmp_path):
    outdated = replace(MUTATIONS[0], replaces="this was never in the file")
    with pytest.raises(Outdated, match="0 times"):
        outdated.apply(ROOT)
    verdict = tried(outdated, show=False)
    assert not verdict.caught
    assert "outdated" in str(verdict)
