import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.config_text import TAIL_SOURCE, approvals

from bridge.config import ConfigError, fingerprint, load

ROOT = Path(__file__).parents[3]


def test_without_a_file_everything_has_its_default():
    config = load(None, {})
    assert config.file is None
    assert config.source.endpoint == "auto"
    assert config.source.api_version == "2020-07-01"
    assert config.source.poll_interval == 1
    assert config.source.scope == "own"
    assert config.source.degraded_after == 300
    assert config.source.snapshot_interval == 86400
    assert config.journal.keep == 30 * 86400
    assert config.journal.max_size == 256 * 1024**2
    assert config.stop_grace == 10
    assert config.approvals.margin == 5
    assert config.http.listen == ("127.0.0.1", 17245)
    assert [(name, sink.type) for name, sink in config.sinks.items()] == [("stdout", "stdout")]


def test_a_named_file_wins_over_the_variable_which_wins_over_the_systems_file(tmp_path):
    named, variable, system = (tmp_path / name for name in ("a.yaml", "b.yaml", "etc/config.yaml"))
    system.parent.mkdir()
    for path in (named, variable, system):
        path.write_text(f"source: {{vm_name: {path.name}}}")
    environ = {"SEB_CONFIG": str(variable)}
    assert load(named, environ).source.vm_name == "a.yaml"
    assert load(None, environ).source.vm_name == "b.yaml"
    assert load(None, {"SEB_CONFIG": ""}).source.vm_name == "config.yaml"
    assert load(None, {}).file == system


def test_a_named_file_that_does_not_exist_is_an_error(tmp_path):
    for path, environ in ((tmp_path / "no", {}), (None, {"SEB_CONFIG": str(tmp_path / "no")})):
        with pytest.raises(ConfigError, match="no: cannot be read: No such file or directory"):
            load(path, environ)


def test_a_directory_is_not_a_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path, {})


def test_an_empty_file_and_empty_sections_are_defaults(read):
    plain = fingerprint(load(None, {}))
    assert fingerprint(read("")) == plain
    assert fingerprint(read("# nothing\n")) == plain
    assert fingerprint(read("source:\n  # scope: all\nsinks:\nhttp:\nstate_dir: null\n")) == plain
    assert fingerprint(read("sinks: {}")) == plain


def test_all_problems_are_reported_together_in_file_order(problems):
    found = problems("source:\n  scope: mine\nsinks:\n  a: {type: kafkaa}\nhttp:\n  listen: 1\n")
    assert [":".join(line.split(":")[:3]) for line in found] == [
        ":2: source.scope",
        ":4: sinks.a.type",
        ":6: http.listen",
    ]


def test_a_byte_order_mark_is_ignored(read):
    assert read(b"\xef\xbb\xbfsource: {scope: all}").source.scope == "all"


def test_variables_are_put_into_text_values(read):
    text = "source: {vm_name: 'a-${A}-${B_2}', labels: {x: '$${A} $A $$ ${A}', y: '${YAML}'}}"
    config = read(text, A="one", B_2="two", YAML="{a: 1} ${A}")
    assert config.source.vm_name == "a-one-two"
    assert config.source.labels == {"x": "${A} $A $$ one", "y": "{a: 1} ${A}"}


def test_variables_in_keys_are_not_replaced(problems):
    assert problems("${A}: 1", A="source")[0].startswith(":1: ${A}: unknown key")


def test_a_number_or_a_switch_may_come_from_a_variable(read):
    text = "{source: {poll_interval: '${EVERY}'}, http: {insecure: '${OPEN}'}}"
    config = read(text, EVERY="2s", OPEN="true")
    assert (config.source.poll_interval, config.http.insecure) == (2, True)


def test_a_variable_that_is_not_set_is_an_error_and_one_that_is_empty_is_not(read, problems):
    text = "source:\n  labels: {a: '${GONE}'}"
    assert problems(text) == [":2: ${GONE} is not set in the environment"]
    assert read(text, GONE="").source.labels == {"a": ""}


@pytest.mark.parametrize("text", ["${A", "${}", "${A B}", "${A:-x}", "x ${"])
def test_a_malformed_variable_is_an_error(problems, text):
    [found] = problems(f"source: {{vm_name: '{text}'}}", A="x")
    assert "write $${ for a literal ${" in found


def test_the_fingerprint_tells_configurations_apart_but_not_secrets(read):
    plain = fingerprint(load(None, {}))
    assert re.fullmatch(r"[0-9a-f]{64}", plain)
    assert fingerprint(read("source: {scope: own}")) == plain
    assert fingerprint(read("source: {scope: all}")) != plain
    assert fingerprint(read("sinks: {stdout: {type: stdout, required: false}}")) != plain
    one, other = (fingerprint(read(f"http: {{tokens: [{text}]}}")) for text in ("abc", "def"))
    assert one == other != plain
    assert fingerprint(read("http: {tokens: [{file: /a}]}")) != one


def test_the_examples_in_the_guide_load(write):
    guide = (ROOT / "docs/configuration.md").read_text()
    environ = {"OPS_TOKEN": "x", "RACK": "12"}
    for example in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL):
        assert load(write(example), environ)


def test_defaults_load_neither_yaml_nor_any_sink_but_stdout_nor_http():
    program = (
        "import sys; from bridge import config, platform; from pathlib import Path\n"
        "platform.config_file = lambda: Path('/nonexistent')\n"
        "config.load(None, {}); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded & {"yaml", "aiohttp", "sinks.file"} == set()
    assert "sinks.stdout" in loaded


def test_the_fingerprint_knows_the_keys_of_a_source(read, tail):
    first = fingerprint(read(approvals(f"from: {{{TAIL_SOURCE}}}")))
    assert first == fingerprint(read(approvals(f"from: {{{TAIL_SOURCE}}}")))
    assert first != fingerprint(
        read(approvals(f"from: {{{TAIL_SOURCE.replace('/topic', '/other')}}}"))
    )
    assert first != fingerprint(read(approvals(f"from: {{{TAIL_SOURCE}}}", "dry_run: true")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("just words", ": must be a mapping with keys such as source and sinks"),
        ("- a\n- b", ": must be a mapping with keys such as source and sinks"),
        (b"a: \xff", ": is not UTF-8 text"),
        ("a: 1".encode("utf-16"), ": is not UTF-8 text"),
        ("#" * 1024**2 + "\n", ": is larger than 1MiB; no configuration is that large"),
    ],
)
def test_an_unreadable_file_is_reported_in_one_sentence(problems, text, said):
    [found] = problems(text)
    assert found.startswith(said)
