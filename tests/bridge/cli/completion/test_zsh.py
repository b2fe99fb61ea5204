import re
import shutil
import subprocess

from support.lacking import lacking

from bridge.cli.completion.zsh import script

ZSH = shutil.which("zsh")


def test_every_function_that_is_called_is_defined(root):
    text = script(root)
    defined = set(re.findall(r"^(_seb\w*)\(\)", text, re.MULTILINE))
    called = set(re.findall(r"\) (_seb\w*) ;;", text))
    assert called | {"_seb"} == defined
    assert {"_seb_dead_letters_drop", "_seb_check"} <= defined
    assert "'--sign-with[sign with the key in FILE]: :_files'" in text


def test_zsh_reads_it(root):
    if ZSH is None:
        lacking("needs zsh")
    done = subprocess.run(
        [ZSH, "-f", "-c", "autoload -U compinit; compinit -u -D; source /dev/stdin; echo $_comps[seb]"],
        input=script(root), capture_output=True, text=True, timeout=25, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("_seb\n", "")
