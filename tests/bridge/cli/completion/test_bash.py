"""The script in the real bash, without and with files to complete."""

import shutil
import subprocess

import pytest

from bridge.cli.completion.bash import script

BASH = shutil.which("bash")
TRY = """
complete_words() {
    COMP_WORDS=(seb "$@"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); _seb
    printf '%s\\n' "${COMPREPLY[@]}"
}
complete_words "$@"
"""


@pytest.fixture(scope="session")
def source(root, tmp_path_factory):
    file = tmp_path_factory.mktemp("bash") / "seb.bash"
    file.write_text(script(root) + TRY)
    return file


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ap"], ["approve"]),
        (["dead-letters", ""], ["list", "show", "replay", "drop"]),
        (["dead-letters", "drop", "--y"], ["--yes"]),
        (["-c", "x.yaml", "dead"], ["dead-letters"]),
        (["completion", "z"], ["zsh"]),
        (["check", "my f"], ["my file.yaml"]),
        (["watch", "-c", "my"], ["my file.yaml"]),
        (["approve", "--wait", ""], [""]),
        (["approve", "x"], [""]),
        (["watch", "--l"], ["--lines"]),
    ],
)
def test_bash_completes(source, tmp_path, words, offered):
    (tmp_path / "my file.yaml").touch()
    done = subprocess.run(
        [str(BASH), "--norc", str(source), *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=25, check=False,
    )  # fmt: skip
    assert (done.stdout.removesuffix("\n").split("\n"), done.stderr) == (offered, "")
