import shutil
import subprocess

import pytest
from support.lacking import lacking

from bridge.cli.completion.fish import script

FISH = shutil.which("fish")


def test_each_option_is_offered_only_behind_its_command(root):
    lines = script(root).splitlines()
    here = "-n '__fish_seen_subcommand_from dead-letters; and __fish_seen_subcommand_from drop'"
    assert f"complete -c seb {here} -l yes -d 'do not ask first'" in lines
    assert "complete -c seb -n '__fish_seen_subcommand_from completion' -a zsh" in lines


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("seb appr", ["approve"]),
        ("seb dead-letters drop --y", ["--yes"]),
        ("seb completion z", ["zsh"]),
    ],
)
def test_fish_completes(root, words, offered):
    if FISH is None:
        lacking("needs fish")
    done = subprocess.run(
        [FISH, "--no-config", "-c", f"source -; complete -C '{words}'"],
        input=script(root), capture_output=True, text=True, timeout=25, check=False,
    )  # fmt: skip
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == offered
