from bridge.cli.completion.tree import FILE, WORD


def test_the_tree_has_commands_acts_options_and_what_they_take(root):
    commands = {one.path: one for one in root.each()}
    assert [act.path[-1] for act in commands["dead-letters",].acts] == [
        "list", "show", "replay", "drop",
    ]  # fmt: skip
    approve = {name: one for one in commands["approve",].options for name in one.names}
    assert approve["--sign-with"].value == approve["-c"].value == FILE
    assert approve["--wait"].value == WORD
    assert approve["--all"].value is None
    assert commands["check",].value == FILE
    assert commands["completion",].choices == ("bash", "zsh", "fish", "powershell")


def test_no_text_can_end_a_string_of_a_shell(root):
    texts = [one.about for one in root.each()]
    texts += [option.about for one in root.each() for option in one.options]
    assert all(texts[1:])
    assert [text for text in texts if set(text) & set("'\"`$\\[]:\n")] == []
