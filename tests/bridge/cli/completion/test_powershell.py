import re

from bridge.cli.completion.powershell import script


def test_every_command_has_an_entry_with_its_words(root):
    text = script(root)
    entries = dict(re.findall(r"^        '([^']*)' = @\((.*)\)$", text, re.MULTILINE))
    assert set(entries) == {" ".join(one.path) for one in root.each()}
    assert "@('--yes', 'do not ask first')" in entries["dead-letters drop"]
    assert "@('status', " in entries[""]
    assert text.count("{") == text.count("}")
