import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import jsonschema_rs
import pytest
import yaml
from support.third_party_source import TailSettings, follow, register

import bridge.config.plugin_sections
import bridge.config.schema
from bridge import platform
from bridge.common.fields import Secret
from bridge.config import ConfigError, Listen, fingerprint, load
from bridge.config.describe import describe
from bridge.config.schema import json_schema
from bridge.config.syntax import MOST_VALUES, parse
from bridge.plugins import ApprovalPlugin, Misconfigured, installed_approvals, installed_sinks

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "config_file", lambda: tmp_path / "etc" / "config.yaml")


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "config.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def read(write):
    return lambda text, **environ: load(write(text), environ)


@pytest.fixture
def problems(write):
    """What `load` says of *text*, with the file's name left out."""

    def problems(text: str | bytes, **environ: str) -> list[str]:
        path = write(text)
        with pytest.raises(ConfigError) as caught:
            load(path, environ)
        lines = str(caught.value).splitlines()
        assert lines == list(caught.value.problems)
        assert all(line.startswith(str(path)) for line in lines)
        return [line.removeprefix(str(path)) for line in lines]

    return problems


# Where it is found


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


def test_the_file_that_is_named_wins_over_the_variable_and_that_over_the_systems(tmp_path):
    named, variable, system = (tmp_path / name for name in ("a.yaml", "b.yaml", "etc/config.yaml"))
    system.parent.mkdir()
    for path in (named, variable, system):
        path.write_text(f"source: {{vm_name: {path.name}}}")
    environ = {"SEB_CONFIG": str(variable)}
    assert load(named, environ).source.vm_name == "a.yaml"
    assert load(None, environ).source.vm_name == "b.yaml"
    assert load(None, {"SEB_CONFIG": ""}).source.vm_name == "config.yaml"
    assert load(None, {}).file == system


def test_a_named_file_that_is_not_there_is_an_error_wherever_it_was_named(tmp_path):
    for path, environ in ((tmp_path / "no", {}), (None, {"SEB_CONFIG": str(tmp_path / "no")})):
        with pytest.raises(ConfigError, match="no: cannot be read: No such file or directory"):
            load(path, environ)


def test_a_directory_is_not_a_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path, {})


def test_a_bad_configuration_is_misconfigured():
    assert issubclass(ConfigError, Misconfigured)


def test_an_empty_file_and_empty_sections_are_defaults(read):
    plain = fingerprint(load(None, {}))
    assert fingerprint(read("")) == plain
    assert fingerprint(read("# nothing\n")) == plain
    assert fingerprint(read("source:\n  # scope: all\nsinks:\nhttp:\nstate_dir: null\n")) == plain
    assert fingerprint(read("sinks: {}")) == plain


# The whole


def test_every_key_is_read(read, tmp_path):
    config = read(f"""
        source:
          endpoint: http://127.0.0.1:8081/
          api_version: 2017-03-01
          poll_interval: 500ms
          scope: all
          vm_name: FrontEnd_IN_0
          degraded_after: 2m
          snapshot_interval: 12h
          tags: [team]
          labels: {{rack: "12", country: no}}
        cloudevents: {{source: /my/source}}
        state_dir: {tmp_path}
        journal: {{keep: 7d, max_size: 64MiB}}
        stop_grace: 0
        control_group: root
        sinks:
          out: {{type: stdout, required: false, only: {{event_types: [Reboot]}}}}
          disk: {{type: file, path: {tmp_path}/events.jsonl}}
        approvals: {{margin: 10s}}
        http:
          listen: "[::1]:8080"
          probes_listen: 0.0.0.0:9090
          tokens: [abc, {{name: ops, token: def, scopes: [read]}}, {{file: /run/token}}]
          tls: {{certificate: /etc/cert.pem, key: /etc/key.pem}}
          insecure: on
    """)
    source = config.source
    assert (source.endpoint, source.api_version) == ("http://127.0.0.1:8081", "2017-03-01")
    assert (source.poll_interval, source.scope, source.vm_name) == (0.5, "all", "FrontEnd_IN_0")
    assert (source.degraded_after, source.snapshot_interval) == (120, 43200)
    assert (source.tags, source.labels) == (("team",), {"rack": "12", "country": "no"})
    assert config.cloudevents.source == "/my/source"
    assert config.state_dir == tmp_path
    assert (config.journal.keep, config.journal.max_size) == (604800, 64 * 1024**2)
    assert (config.stop_grace, config.control_group, config.approvals.margin) == (0, "root", 10)
    assert [(name, sink.type) for name, sink in config.sinks.items()] == [
        ("out", "stdout"),
        ("disk", "file"),
    ]
    assert not config.sinks["out"].required
    assert config.http.listen == Listen("::1", 8080)
    assert config.http.probes_listen == Listen("0.0.0.0", 9090)
    assert [(token.name, token.token, token.scopes) for token in config.http.tokens] == [
        ("token-1", Secret("abc"), ("read", "approve")),
        ("ops", Secret("def"), ("read",)),
        ("token-3", Secret(path=Path("/run/token")), ("read", "approve")),
    ]
    assert config.http.tls is not None
    assert config.http.insecure


def test_a_relative_state_directory_is_made_absolute(read, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert read("state_dir: state").state_dir == tmp_path / "state"


def test_whether_the_address_was_asked_for_is_remembered(read):
    assert load(None, {}).http.listen_is_default
    assert read("http: {tokens: [abc]}").http.listen_is_default
    assert not read("http: {listen: 127.0.0.1:17245}").http.listen_is_default


def test_http_can_be_off(read):
    assert read("http: {listen: null}").http.listen is None


# Errors


def test_an_unknown_key_names_the_nearest_right_one(problems):
    assert problems("source:\n  poll_intervall: 1s") == [
        ":2: source.poll_intervall: unknown key; did you mean poll_interval?"
    ]
    assert problems("sink: {}") == [":1: sink: unknown key; did you mean sinks?"]
    assert problems("journal: {xyzzy: 1}") == [
        ":1: journal.xyzzy: unknown key; allowed are keep, max_size"
    ]
    assert problems("sinks:\n  a:\n    type: stdout\n    retry: {timout: 1s}") == [
        ":4: sinks.a.retry.timout: unknown key; did you mean timeout?"
    ]
    assert problems("http: {tokens: [{token: abc, scope: [read]}]}") == [
        ":1: http.tokens[0].scope: unknown key; did you mean scopes?"
    ]


def test_all_problems_are_named_at_once_in_the_order_of_the_file(problems):
    found = problems("source:\n  scope: mine\nsinks:\n  a: {type: kafkaa}\nhttp:\n  listen: 1\n")
    assert [re.match(r":\d+: [a-z.]+", line)[0] for line in found] == [
        ":2: source.scope",
        ":4: sinks.a.type",
        ":6: http.listen",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source: {endpoint: 127.0.0.1}", "write auto, or a URL like http://127.0.0.1:8081"),
        ("source: {endpoint: 'http://127.0.0.1:99999'}", "write auto, or a URL like"),
        ("source: {endpoint: 'http://a:b@127.0.0.1'}", "write auto, or a URL like"),
        ("source: {endpoint: 'http://[::1'}", "write auto, or a URL like"),
        ("source: {endpoint: 'http://h/metadata/scheduledevents'}", "write only http://h"),
        ("source: {api_version: 2017-02-28}", "write a date from 2017-03-01 on"),
        ("source: {api_version: 2020-02-30}", "write a date from 2017-03-01 on"),
        ("source: {api_version: latest}", "write a date from 2017-03-01 on"),
        ("source: {api_version: 2020}", "write a date from 2017-03-01 on"),
        ("source: {poll_interval: 199ms}", "must be at least 200ms: Azure allows"),
        ("source: {poll_interval: 1}", "write it as 500ms, 1s, 5m, 24h or 7d"),
        ("source: {scope: mine}", "'mine' is not allowed; it must be 'own' or 'all'"),
        ("source: {vm_name: 12}", "must be text; put it in quotes"),
        ("source: {vm_name: ''}", "must be one line of text that is not empty"),
        ("source: {degraded_after: 0s}", "must be at least 1s"),
        ("source: {snapshot_interval: 0s}", "must be at least 1s"),
        ("source: {tags: team}", "must be a list"),
        ("source: {tags: }", "is empty; give it a value, or leave the key out"),
        ("source: {labels: {rack: 12}}", "source.labels.rack: must be text; put it in quotes"),
        ("source: [a]", "source: must be a mapping (key: value)"),
        ("cloudevents: {source: a b}", "cloudevents.source: must be a URI reference, such as"),
        ("state_dir: ~/state", "~ is not replaced here; write the whole path"),
        ("journal: {max_size: 1KiB}", "must be at least 1MiB"),
        ("journal: {max_size: 256}", "write it as 64KiB, 256MiB or 1GiB"),
        ("stop_grace: ten", "write it as 500ms, 1s, 5m, 24h or 7d"),
        ("control_group: no-such-group-here", "there is no group 'no-such-group-here'"),
        ("http: {listen: 17245}", "write HOST:PORT"),
        ("http: {listen: ':17245'}", "write HOST:PORT"),
        ("http: {listen: '::1:80'}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1:70000}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1:80/x}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1:80, probes_listen: 127.0.0.1:80}", "use two ports"),
        ("http: {insecure: maybe}", "must be true or false"),
        ("http: {tls: {certificate: a.pem}}", "http.tls.key: is missing"),
        ("http: {tokens: abc}", "must be a list"),
        ("http: {tokens: [12]}", "http.tokens[0]: must be a mapping"),
        (
            "http: {tokens: [{name: a, token: b, scopes: [write]}]}",
            "it must be 'read' or 'approve'",
        ),
        ("http: {tokens: [{name: a, token: b, scopes: []}]}", "http.tokens[0].scopes:"),
        ("http: {tokens: [{name: a}]}", "http.tokens[0].token: is missing"),
        ("http: {tokens: [{name: a, token: b}, {name: a, token: c}]}", "the same name"),
        ("sinks: [a]", "must be a mapping of names to settings"),
        ("sinks: {Bus: {type: stdout}}", "sinks.Bus: a sink's name is up to 63 of a-z 0-9 . _ -"),
        ("sinks: {-a: {type: stdout}}", "sinks.-a: a sink's name"),
        ("sinks: {a: {}}", "sinks.a: needs a type; there are"),
        ("sinks: {a: }", "sinks.a: needs a type; there are"),
        ("sinks: {a: {type: 1}}", "sinks.a: needs a type; there are"),
        ("sinks: {a: {type: telegraph}}", "there is no sink type 'telegraph'; there are"),
        ("sinks: {a: {type: file}}", "sinks.a.path: is missing"),
        ("sinks: {a: {type: stdout, retry: {timeout: 0s}}}", "must be more than 0ms"),
    ],
)
def test_a_wrong_value_is_explained(problems, text, said):
    [found] = problems(text)
    assert said in found
    assert found.startswith(":1: ")


def test_a_sinks_name_may_have_63_characters(read, problems):
    assert read(f"sinks: {{{'a' * 63}: {{type: stdout}}}}").sinks
    assert problems(f"sinks: {{{'a' * 64}: {{type: stdout}}}}")


def test_an_address_beyond_loopback_needs_tokens_and_encryption_or_a_word(read, problems):
    open_to_all = "listen: 0.0.0.0:80"
    tls = "tls: {certificate: a, key: b}"
    assert "needs tokens" in problems(f"http: {{{open_to_all}, {tls}}}")[0]
    assert "needs tokens" in problems(f"http: {{{open_to_all}, insecure: true}}")[0]
    assert "needs tls, or insecure: true" in problems(f"http: {{{open_to_all}, tokens: [abc]}}")[0]
    assert read(f"http: {{{open_to_all}, tokens: [abc], {tls}}}")
    assert read(f"http: {{{open_to_all}, tokens: [abc], insecure: true}}")
    assert read(f"http: {{{open_to_all}, tls: {{certificate: a, key: b, client_ca: c}}}}")
    for loopback in ("127.0.0.2:80", "'[::1]:80'", "localhost:80"):
        assert read(f"http: {{listen: {loopback}}}")
    for other in ("'[::]:80'", "vm.example:80", "10.0.0.4:80"):
        assert problems(f"http: {{listen: {other}}}")


def test_probes_may_listen_anywhere(read):
    assert read("http: {probes_listen: 0.0.0.0:9090}")


# The file itself


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("just words", ": is not a mapping; it must hold keys such as source and sinks"),
        ("- a\n- b", ": is not a mapping; it must hold keys such as source and sinks"),
        ("source:\n\tscope: own", ":2: is indented with a tab; YAML wants spaces"),
        ("source: }", ":1: is not YAML: "),
        ("a: b: c", ":1: is not YAML: mapping values are not allowed"),
        (b"a: \xff", ": is not UTF-8 text"),
        ("a: 1".encode("utf-16"), ": is not UTF-8 text"),
        (b"a: \x00", ": holds characters that YAML does not allow"),
        ("source:\n  scope: own\n  scope: all", ":3: says 'scope' again; a key stands only once"),
        ("a: {<<: {}, <<: {}}", ":1: says '<<' again; a key stands only once"),
        ("source: {}\nsource: {}", ":2: says 'source' again; a key stands only once"),
        ("source: {}\n---\nsource: {}", ":2: starts a second document; one is allowed"),
        ("? [a]\n: b", ":1: has a key that is not text"),
        ("a: !!python/object:os.system x", ":1: has a tag; put text that begins with ! in quotes"),
        ("a: *b", ":1: has an alias without its anchor; put text that begins with * in quotes"),
        ("a: &a [*a]", ":1: has an alias without its anchor"),
        ("source: &s {scope: all}\njournal: {<<: [1]}", ":2: merges (<<) something that is not"),
        ("a: " + "[" * 200_000, ":1: is nested more than 40 deep"),
        ("a: " + "{b: " * 50, ":1: is nested more than 40 deep"),
        ("- " * 50_000 + "a", ":1: is nested more than 40 deep"),
        ("#" * 1024**2 + "\n", ": is larger than 1MiB, which no configuration is"),
    ],
)
def test_a_file_that_cannot_be_read_says_so_in_one_sentence(problems, text, said):
    [found] = problems(text)
    assert found.startswith(said)


def test_a_bomb_of_aliases_does_not_go_off(problems):
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    [found] = problems(bomb)
    assert f"holds more than {MOST_VALUES} values" in found


def test_anchors_and_merges_serve_to_say_things_once(read):
    config = read("""
        sinks:
          a: &common {type: stdout, required: false, retry: &patient {max_age: 1d}}
          b: {<<: *common, required: true}
          c: {<<: [{stale: skip, required: true}, *common], retry: *patient}
    """)
    assert [sink.required for sink in config.sinks.values()] == [False, True, True]
    assert {sink.retry.max_age for sink in config.sinks.values()} == {86400}
    assert config.sinks["c"].stale == "skip"


def test_words_that_old_yaml_took_for_something_else_are_text(read):
    labels = read("""
        source:
          labels: {a: no, b: off, c: 012, d: 12:30, e: 2020-01-01, f: 1_000, g: .inf, h: 0x10, i: "1"}
    """).source.labels
    assert list(labels.values()) == [
        *("no", "off", "012", "12:30", "2020-01-01", "1_000", ".inf", "0x10", "1")
    ]


def test_a_byte_order_mark_is_no_harm(read):
    assert read(b"\xef\xbb\xbfsource: {scope: all}").source.scope == "all"


# Variables and secrets


def test_variables_are_put_into_text_values(read):
    text = "source: {vm_name: 'a-${A}-${B_2}', labels: {x: '$${A} $A $$ ${A}', y: '${YAML}'}}"
    config = read(text, A="one", B_2="two", YAML="{a: 1} ${A}")
    assert config.source.vm_name == "a-one-two"
    assert config.source.labels == {"x": "${A} $A $$ one", "y": "{a: 1} ${A}"}


def test_keys_know_no_variables(problems):
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
def test_what_only_looks_like_a_variable_is_an_error(problems, text):
    [found] = problems(f"source: {{vm_name: '{text}'}}", A="x")
    assert "write $${ to mean the characters" in found


@pytest.mark.parametrize(
    "text",
    [
        "http: {tokens: [{nam: a, token: hunter22}]}",
        "http: {tokens: [hunter22 x]}",
        "http: {tokens: [{name: a, token: {hunter22}}]}",
        "http: {tokens: [hunter22], tls: {hunter22: }",
        "http: {tokens: [*hunter22]}",
        "http: {tokens: [!hunter22]}",
        "http: {tokens: [hunter22: a: b]}",
        "http: {tokens: ['hunter22]}",
        "http: {tokens: [@hunter22]}",
        "http: {tokens: ['hunter22${']}",
        "http: {tokens: ['hunter22', '${GONE}']}",
        "source: {scope: '${SECRET}'}",
        "source: {scope: {password: hunter22}}",
        "source: {poll_interval: 'x${SECRET}'}",
        "source: {endpoint: '${SECRET}'}",
        "http: {listen: '${SECRET}'}",
        "sinks: {a: {type: '${SECRET}'}}",
    ],
)
def test_secrets_do_not_show_in_errors(problems, text):
    found = problems(text, SECRET="hunter22")
    assert found
    assert "hunter22" not in str(found)


def test_secrets_show_neither_in_sentences_nor_in_values(read):
    config = read(
        "http: {tokens: [{name: ops, token: '${SECRET}', scopes: [read]}]}", SECRET="s3cr3t"
    )
    assert config.http.tokens[0].token.get() == "s3cr3t"
    assert "Token ops may read." in describe(config)
    for shown in (repr(config), str(config), config.model_dump_json(), str(describe(config))):
        assert "s3cr3t" not in shown


# Formats


def in_format(written: str, kind: str = "stdout") -> str:
    return f"sinks:\n  out:\n    type: {kind}\n    format: {written}\n"


def test_a_format_is_named_alone_or_with_its_keys(read):
    assert read(in_format("cloudevents")).sinks["out"].format.type == "cloudevents"
    assert read(in_format("{type: cloudevents}")) == read(in_format("cloudevents"))
    paged = read(in_format("{type: pagerduty, routing_key: '${KEY}'}"), KEY="k").sinks["out"]
    assert paged.format.routing_key == Secret("k")
    assert read(in_format("null")).sinks["out"].format is None


def test_a_chat_skips_what_is_overtaken_unless_the_sink_says_otherwise(read):
    assert read(in_format("cloudevents")).sinks["out"].stale == "deliver"
    assert read(in_format("slack")).sinks["out"].stale == "skip"
    kept = in_format("slack") + "    stale: deliver\n"
    assert read(kept).sinks["out"].stale == "deliver"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("slak", ".format: there is no format type 'slak'; there are "),
        ("{type: slak}", ".format: there is no format type 'slak'; there are "),
        ("7", ".format: must be a format's name, or {type: NAME, …}; there are "),
        ("[slack]", ".format: must be a format's name, or {type: NAME, …}; there are "),
        ("{}", ".format: must be a format's name, or {type: NAME, …}; there are "),
        ("pagerduty", ".format.routing_key: is missing"),
        ("{type: pagerduty, routing_key: 7}", ".format.routing_key: a secret is a text"),
        (
            "{type: pagerduty, routing_kye: a, routing_key: b}",
            ".format.routing_kye: unknown key; did you mean routing_key?",
        ),
        (
            "{type: pagerduty, routing_key: a, started: resolve}",
            ".format.started: 'resolve' is not allowed; it must be 'trigger' or 'acknowledge'",
        ),
        ("{type: slack, colour: red}", ".format.colour: unknown key; allowed are type"),
        ("template", ".format: needs either template or file"),
        ("{type: template, template: '{{ id'}", ".format: the template, line 1: unexpected end"),
        ("{type: template, file: /no/such}", ".format: /no/such cannot be read: No such file"),
    ],
)
def test_what_is_wrong_with_a_format_is_explained_where_it_stands(problems, written, said):
    [found] = problems(in_format(written))
    assert found.startswith(f":4: sinks.out{said}")


def test_a_key_that_is_wrong_in_a_format_has_its_own_line(problems):
    text = in_format("\n      type: template\n      template: a\n      content-type: b")
    assert problems(text) == [
        ":7: sinks.out.format.content-type: unknown key; did you mean content_type?"
    ]


def test_the_secret_of_a_format_is_never_said(read, problems):
    text = in_format("{type: pagerduty, routing_key: '${KEY}', x: 1}")
    assert "s3cret" not in str(problems(text, KEY="s3cret"))
    good = read(in_format("{type: pagerduty, routing_key: '${KEY}'}"), KEY="s3cret")
    assert "s3cret" not in repr(good) + str(describe(good))
    rotated = read(in_format("{type: pagerduty, routing_key: '${KEY}'}"), KEY="other")
    assert fingerprint(good) == fingerprint(rotated)
    assert fingerprint(good) != fingerprint(read(in_format("slack")))


@pytest.mark.parametrize(
    "sink",
    [
        "{type: stdout, format: slack}",
        "{type: file, path: /x, format: slack}",
        "{type: kafka, bootstrap_servers: [a], format: slack}",
        "{type: mqtt, host: a, format: slack}",
    ],
)
def test_the_sentence_about_a_sink_names_its_format(read, sink):
    [said] = [one for one in describe(read(f"sinks: {{out: {sink}}}")) if "Sink out" in one]
    assert re.search(r"(as|of) slack\b", said)
    assert "skips what is overtaken" in said


# Sentences and the fingerprint


def test_a_configuration_is_said_in_sentences(read, tmp_path):
    said = "\n".join(
        describe(
            read(f"""
                source: {{endpoint: "http://127.0.0.1:8081", poll_interval: 2s, scope: all, tags: [team]}}
                cloudevents: {{source: /mine}}
                state_dir: {tmp_path}
                control_group: root
                sinks:
                  out: {{type: stdout, required: false, stale: skip, only: {{types: [a.*], event_types: [Reboot]}}}}
                http: {{listen: 0.0.0.0:80, tokens: [abc], insecure: true, probes_listen: 0.0.0.0:90}}
            """)
        )
    )
    for sentence in (
        "Polls http://127.0.0.1:8081 every 2s with api-version 2020-07-01.",
        "Publishes all scheduled events that this VM can see.",
        "CloudEvents come from the source /mine.",
        "CloudEvents carry in observer: the VM tag team.",
        f"Keeps its journal in {tmp_path}: what is settled for 30d, and at most 256MiB.",
        "Serves console and API at http://0.0.0.0:80.",
        "not encrypted, as insecure: true says.",
        "Token token-1 may read and approve.",
        "Serves probes and metrics, without a token, at http://0.0.0.0:90.",
        "the group root.",
    ):
        assert sentence in said
    assert re.search(
        r"Sink out writes .* \(gives up after 7d; only types a\.\*; only event types Reboot; "
        r"skips what is overtaken; best effort\)\.",
        said,
    )


def test_defaults_are_said_in_sentences(read):
    said = "\n".join(describe(load(None, {})))
    assert "No configuration file: all defaults." in said
    assert "Finds the metadata service and polls it every 1s" in said
    assert "name this VM (its name comes from instance metadata)" in said
    assert "read-only, for there are no tokens; when that is taken, goes on without." in said
    assert "Serves no console and no API." in describe(read("http: {listen: null}"))


def test_the_fingerprint_tells_configurations_apart_but_not_secrets(read):
    plain = fingerprint(load(None, {}))
    assert re.fullmatch(r"[0-9a-f]{64}", plain)
    assert fingerprint(read("source: {scope: own}")) == plain
    assert fingerprint(read("source: {scope: all}")) != plain
    assert fingerprint(read("sinks: {stdout: {type: stdout, required: false}}")) != plain
    one, other = (fingerprint(read(f"http: {{tokens: [{text}]}}")) for text in ("abc", "def"))
    assert one == other != plain
    assert fingerprint(read("http: {tokens: [{file: /a}]}")) != one


# The schema


def committed() -> dict:
    return json.loads((ROOT / "schemas/config.v1.schema.json").read_text())


def test_the_schema_in_the_tree_is_what_the_models_give():
    assert committed() == json_schema(), "run: scripts/config-schema"


def test_the_schema_takes_what_we_take_and_refuses_what_we_refuse(read):
    valid = jsonschema_rs.validator_for(committed())
    for text in (
        "{source: {api_version: '2017-03-01'}, http: null}",
        "{sinks: {a: {type: stdout}, b: {type: file, path: /x}}}",
        "{http: {listen: null, tokens: [abc, {file: /x}, {token: x}, {name: a, token: {file: x}}]}}",
        "{stop_grace: 1.5s, journal: {max_size: 1 GiB}}",
        "{sinks: {a: {type: stdout, format: slack}, b: {type: stdout, format: {type: teams}}}}",
        "{sinks: {a: {type: stdout, format: {type: pagerduty, routing_key: {file: x}}}}}",
        "{sinks: {a: {type: stdout, format: {type: template, template: a}}}}",
    ):
        assert read(text)
        assert valid.is_valid(yaml.safe_load(text)), text
    for text in (
        "{sinks: {a: {type: telegraph}}}",
        "{sinks: {a: {type: file}}}",
        "{sinks: {a: {}}}",
        "{sinks: {A: {type: stdout}}}",
        "{source: {scopes: own}}",
        "{sinks: {a: {type: stdout, format: slak}}}",
        "{sinks: {a: {type: stdout, format: pagerduty}}}",
        "{sinks: {a: {type: stdout, format: {type: slack, routing_key: a}}}}",
        "{stop_grace: 5}",
        "{http: {tokens: [{name: a}]}}",
    ):
        with pytest.raises(ConfigError):
            read(text)
        assert not valid.is_valid(yaml.safe_load(text)), text


def test_every_default_in_the_schema_is_one_that_the_schema_takes():
    schema = committed()
    seen = 0
    for definition in [schema, *schema["$defs"].values()]:
        for field in definition.get("properties", {}).values():
            if isinstance(field, dict) and "default" in field:
                alone = {**field, "$defs": schema["$defs"]}
                jsonschema_rs.validator_for(alone).validate(field["default"])
                seen += 1
    assert seen > 20


def test_the_examples_in_the_guide_are_valid():
    guide = (ROOT / "docs/configuration.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert examples
    for example in examples:
        jsonschema_rs.validator_for(committed()).validate(parse(example, str).data)


def test_the_examples_in_the_guide_load(write):
    guide = (ROOT / "docs/configuration.md").read_text()
    environ = {"OPS_TOKEN": "x", "RACK": "12"}
    for example in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL):
        assert load(write(example), environ)


def test_the_guide_names_every_key():
    schema = committed()
    guide = (ROOT / "docs/configuration.md").read_text()
    sections = {"Source": "source", "CloudEvents": "cloudevents", "Journal": "journal"}
    sections |= {"Approvals": "approvals", "Http": "http"}
    keys = [
        f"{at}.{key}"
        for name, at in sections.items()
        for key in schema["$defs"][name]["properties"]
    ]
    keys += [key for key in schema["properties"] if key not in sections.values()]
    keys += schema["$defs"]["sink-stdout"]["properties"]
    assert [key for key in keys if f"`{key}`" not in guide] == []


# What it costs


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


# Approvals

DESK = "desk: {type: tail, path: /topic, trust: transport}"


@pytest.fixture
def tail():
    """A type of approval source that somebody else installed."""
    undo = register()
    yield
    undo()


def approvals(*keys: str, sinks: str = "{a: {type: file, path: /a}}") -> str:
    return f"{{sinks: {sinks}, approvals: {{{', '.join(keys)}}}}}"


def test_approvals_have_the_defaults_of_the_contract():
    found = load(None, {}).approvals
    assert (found.sources, found.require, found.leader) == ({}, "each-resource", "first-resource")
    assert (found.takeover_after, found.early_grace, found.hold_timeout) == (5, 30, 600)
    assert (found.lookback, found.margin) == (3600, 5)
    assert (found.answer_strays, found.dry_run) == (False, False)


def test_a_source_is_read_by_its_own_plugin(read, tail):
    found = read(approvals(f"from: {{{DESK}}}", "dry_run: true", "require: any"))
    assert found.approvals.sources["desk"].path == Path("/topic")
    assert found.approvals.dry_run


def test_a_source_may_take_the_connection_of_a_sink_and_nothing_else_of_it(read, monkeypatch):
    class Both(TailSettings):
        type: Literal["file"]

        def overlaps(self, sink):
            return False

    both = ApprovalPlugin(settings=Both, open=follow)
    monkeypatch.setattr(bridge.config.plugin_sections, "find_approvals", lambda kind: both)
    sinks = "{a: {type: file, path: /shared, required: false}}"
    found = read(approvals("from: {desk: {sink: a, trust: transport}}", sinks=sinks))
    assert found.approvals.sources["desk"] == Both(type="file", path="/shared", trust="transport")
    own = "from: {desk: {sink: a, path: /own, trust: transport}}"
    assert read(approvals(own, sinks=sinks)).approvals.sources["desk"].path == Path("/own")


WHSEC = f"whsec_{'A' * 32}"


def test_no_sources_are_as_good_as_none(read):
    for given in ("from: null", "from: {}", "margin: 5s"):
        assert read(approvals(given)).approvals.sources == {}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("from: [a]", "approvals.from: must be a mapping of names to settings"),
        ("from: {a: {trust: transport}}", "approvals.from.a: needs a type; there are"),
        ("from: {a: {type: tail, path: /x}}", "approvals.from.a.trust: is missing"),
        ("from: {a: {type: tail, path: /x, trust: me}}", "'transport' or 'signed'"),
        ("from: {a: {type: tail, path: /x, trust: signed}}", "signed needs a key in approvals"),
        ("from: {a: {type: telegraph, trust: transport}}", "no approval source type 'telegraph'"),
        ("from: {A: {type: tail, path: /x, trust: transport}}", "an approval source's name is"),
        ("from: {a: {type: tail, path: /x, trust: transport, x: 1}}", "approvals.from.a.x: unknown"),
        ("from: {a: {sink: b, trust: transport}}", "approvals.from.a.sink: there is no sink 'b'"),
        ("from: {a: {sink: 7, trust: transport}}", "there is no sink 7"),
        ("from: {a: {sink: a, type: tail, trust: transport}}", "stands beside type"),
        ("from: {b: {sink: a, trust: transport}}", "no approval source type 'file'; there are"),
        ("from: {b: {type: tail, path: /a, trust: transport}}", "where sink a publishes"),
        ("require: both", "must be each-resource, any, {count: N} or {approvers"),
        ("leader: me", "'first-resource' or 'none'"),
        ("takeover_after: soon", "'soon' is not a duration"),
        ("dryrun: true", "did you mean dry_run?"),
        ("require: {count: 0}", "approvals.require.count: must be at least 1"),
        ("require: {count: two}", "approvals.require.count: must be a whole number"),
        ("require: {count: 1, approvers: [a]}", "has both count and approvers"),
        ("require: {approvers: []}", "approvals.require.approvers: "),
        ("require: 2", "{count: N} or {approvers: [NAME, …]}"),
        ("allow: [{}]", "approvals.allow[0].approver: is missing"),
        ("allow: [{approver: a, key: x}]", "approvals.allow[0].key: unknown key; did you mean keys?"),
        ("allow: [{approver: a, keys: [{}]}]", "approvals.allow[0].keys[0]: needs either hmac or"),
        ("allow: [{approver: a, keys: [{hmac: x}]}]", "begins with whsec_"),
        ("allow: [{approver: a, token: t}]", "approvals.allow[0].token: 't' is no name in http.tokens"),
        ("allow: [{approver: a, via: htp}]",
         "approvals.allow[0].via: 'htp' is no channel; there are control, http"),
        ("allow: [{approver: a}], require: {approvers: [a, uid 0]}",
         "approvals.require: uid 0 has no entry in approvals.allow by which it may approve"),
        ("allow: [{approver: a, decisions: [hold]}], require: {approvers: [a]}",
         "approvals.require: a has no entry in approvals.allow by which it may approve"),
        (f"allow: [{{approver: a, keys: [{{hmac: {WHSEC}}}]}}, {{approver: b, keys: [{{hmac: {WHSEC}}}]}}]",
         "allow: a and b have the same key, token or certificate"),
        ("auto: [{}]", "approvals.auto[0]: needs at least one of event_source"),
        ("auto: [{event_type: Freeze, max_duration: long}]", "approvals.auto[0].max_duration: 'long'"),
        ("remind: [0s]", "approvals.remind: must be at most 10 durations, each more than 0s"),
        ("remind: 5m", "approvals.remind: must be a list"),
        ("from: {http: {type: tail, path: /x, trust: transport}}", "a name that the bridge itself uses"),
        (f"from: {{a: {{type: tail, path: /x, trust: signed}}}}, allow: [{{approver: a, via: b, keys: [{{hmac: {WHSEC}}}]}}]",
         "signed needs a key in approvals"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_approvals_is_explained(problems, tail, keys, said):
    [found] = problems(approvals(keys))
    assert said in found


def test_an_approvers_token_must_be_one_that_may_approve(problems, read):
    entry = "approvals: {allow: [{approver: a, token: t}]}"
    [found] = problems(f"{{{entry}, http: {{tokens: [{{name: t, token: x, scopes: [read]}}]}}}}")
    assert found.endswith("approvals.allow[0].token: the token t has no scope approve")
    assert read(f"{{{entry}, http: {{tokens: [{{name: t, token: x}}]}}}}").approvals.allow


MTLS = "tls: {certificate: a, key: b, client_ca: ca.pem}"


@pytest.mark.parametrize(
    ("entry", "http", "said"),
    [
        ("certificate: CN=a", "tokens: [x]", "allow[0].certificate: nobody asks for certificates"),
        ("certificate: CN=a", f"listen: null, {MTLS}", "nobody asks for certificates"),
        ("certificate: CN=a, via: control", MTLS, "allow[0].via: 'control' shows no certificates"),
        ("certificate: orders", MTLS, "allow[0].certificate: must be the subject of a certificate"),
        ("via: http", "tls: {certificate: a, key: b, client_certificates: optional}",
         "http.tls: client_certificates is of no use without client_ca"),
        ("via: http", "tls: {certificate: a, key: b, client_ca: c, client_certificates: never}",
         "http.tls.client_certificates: 'never' is not allowed"),
    ],
)  # fmt: skip
def test_certificates_that_would_prove_nobody_are_refused(problems, entry, http, said):
    [found] = problems(f"{{approvals: {{allow: [{{approver: a, {entry}}}]}}, http: {{{http}}}}}")
    assert said in found


def test_one_certificate_has_one_name(problems):
    allow = "[{approver: a, certificate: CN=x}, {approver: b, certificate: CN=x}]"
    [found] = problems(f"{{approvals: {{allow: {allow}}}, http: {{{MTLS}}}}}")
    assert found.endswith("allow: a and b have the same key, token or certificate")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("required", "may read; without one nobody gets a connection."),
        ("optional", "may read; without one a client needs a token, or signs its votes."),
    ],
)
def test_certificates_are_described_in_sentences(read, how, said):
    http = MTLS.replace("}", f", client_certificates: {how}}}")
    told = describe(
        read(f"{{approvals: {{allow: [{{approver: a, certificate: CN=x}}]}}, http: {{{http}}}}}")
    )
    assert "a may approve and hold and release, proved by the certificate CN=x." in told
    assert f"Whoever shows a certificate signed by ca.pem {said}" in told
    assert (
        "Approvals are taken over the control socket, "
        "and over HTTP with a client certificate whose subject is listed." in told
    )
    assert not any("read-only" in one for one in told)


def test_a_name_that_anybody_may_claim_on_a_channel_of_trust_is_said(read, tail):
    entries = f"{{approver: bare}}, {{approver: shut, via: http}}, {{approver: k, keys: [{{hmac: {WHSEC}}}]}}"
    claim = (
        "Whoever may publish to desk may vote there as bare: "
        "its entry asks for no proof and names no via."
    )

    def told(*keys, trust="transport"):
        source = f"from: {{{DESK.replace('transport', trust)}}}"
        found = describe(read(approvals(source, f"allow: [{entries}]", *keys)))
        return [one for one in found if one.startswith("Whoever may publish")]

    assert told() == [claim]
    assert told(trust="signed") == []
    assert told("require: {count: 1}") == [], "such votes do not count there"


def test_an_approver_that_is_asked_for_may_be_a_channel_or_the_operators_own_rule(read, tail):
    allow = (
        "allow: [{approver: a, via: desk}, {approver: b, via: http}, {approver: c, via: control}]"
    )
    wanted = "require: {approvers: [a, b, c, auto, 'sink:drain']}"
    assert len(read(approvals(f"from: {{{DESK}}}", allow, wanted)).approvals.allow) == 3


def test_a_limit_has_the_unit_of_its_key(problems, tail):
    [number] = problems(approvals("require: {count: 0}"))
    assert number.endswith("count: must be at least 1")
    [duration] = problems("source: {degraded_after: 0s}")
    assert duration.endswith("degraded_after: must be at least 1s")
    [names] = problems(approvals("require: {approvers: []}"))
    assert names.endswith("approvers: must not be empty")


def test_approvals_are_described_in_sentences(read, tail):
    keys = (f"from: {{{DESK}}}", "answer_strays: true", "dry_run: true", "require: any")
    said = describe(read(approvals(*keys)))
    assert (
        "Approvals from desk are the lines of /topic; whoever may publish there is believed."
        in said
    )
    assert "One approval is enough for all VMs of a scheduled event." in said
    assert "The bridge on the event's first VM tells Azure, each next one 5s later." in said
    assert "A hold counts for 10m, and never stops Azure; a vote waits 30s for its event." in said
    assert "Dry run: decides and publishes, and tells Azure nothing." in said
    assert any(one.startswith("Publishes refusals") for one in said)
    alone = describe(load(None, {}))
    assert "Approvals are taken over the control socket." in alone
    assert any("approvals.from names no source" in one for one in alone)
    alone = describe(read(approvals(f"from: {{{DESK}}}", "leader: none")))
    assert "Every bridge on one of the event's VMs tells Azure at once." in alone
    assert "A scheduled event is approved when each of its VMs was approved for." in alone


def test_rights_rules_and_reminders_are_described_in_sentences(read, tail):
    entry = f"{{approver: orders, keys: [{{hmac: {WHSEC}}}], event_types: [Freeze], decisions: [approve, hold]}}"
    keys = (
        f"from: {{{DESK.replace('transport', 'signed')}}}",
        f"allow: [{entry}, {{approver: ops, token: ops, via: http, resources: [web*], all_resources: true}}]",
        "auto: [{event_type: Freeze, max_duration: 10s}]",
        "require: {count: 2}",
        "remind: [1m, 5m]",
    )
    http = "{tokens: [{name: ops, token: x}], webhook_origins: [e.example]}"
    config = read(f"{approvals(*keys)[:-1]}, http: {http}}}")
    said = describe(config)
    for sentence in (
        "Approvals from desk are the lines of /topic; each must be signed.",
        "Approvals are taken over the control socket, and over HTTP with the token ops, and over HTTP when they are signed.",
        "orders may approve and hold, Freeze events, proved by its key.",
        "ops may approve and hold and release, for VMs like web*, for all VMs of an event at once, via http only, proved by the token ops.",
        "Nobody else may vote, through whatever door.",
        "A scheduled event is approved by 2 different verified approvers.",
        "Approves by itself for this VM scheduled events of type Freeze, that take at most 10s.",
        "While votes are missing, publishes approval.due 5m and 1m before notBefore.",
        "Consents to CloudEvents webhooks with approvals from e.example.",
    ):
        assert sentence in said
    assert WHSEC not in f"{said} {config!r} {config.model_dump(mode='json', fallback=str)}"
    named = describe(read(approvals("require: {approvers: [a, b]}")))
    assert "A scheduled event is approved when all of these have, verified: a, b." in named


def test_check_says_whose_votes_would_not_count(read, tail):
    bus = f"from: {{{DESK}}}"
    lost = "From desk only signed approvals count, for the policy asks for verified approvers."
    assert lost in describe(read(approvals(bus, "require: {count: 2}")))
    assert lost not in describe(read(approvals(bus, "require: any")))
    nobody = (
        "On the control socket only signed votes count: no entry is for a user of this machine, "
        "as {approver: uid 0, via: control} would be for root."
    )
    assert nobody in describe(read(approvals("allow: [{approver: a}]")))
    assert nobody in describe(read(approvals("allow: [{approver: uid 0, via: http}]")))
    assert nobody not in describe(read(approvals("allow: [{approver: uid 0}]")))
    assert nobody not in describe(read(approvals("dry_run: true")))


def test_the_fingerprint_knows_the_keys_of_a_source(read, tail):
    first = fingerprint(read(approvals(f"from: {{{DESK}}}")))
    assert first == fingerprint(read(approvals(f"from: {{{DESK}}}")))
    assert first != fingerprint(read(approvals(f"from: {{{DESK.replace('/topic', '/other')}}}")))
    assert first != fingerprint(read(approvals(f"from: {{{DESK}}}", "dry_run: true")))


def test_the_schema_knows_our_own_sources_with_a_connection_or_with_a_sinks(monkeypatch, tail):
    sinks = {name: point for name, point in installed_sinks().items() if name in {"file", "stdout"}}
    monkeypatch.setattr(bridge.config.schema, "installed_sinks", lambda: sinks)
    ours = {"tail": installed_approvals()["tail"]}
    monkeypatch.setattr(bridge.config.schema, "installed_approvals", lambda: ours)
    monkeypatch.setattr(bridge.config.schema, "_OWN", ("sinks.", "support."))
    valid = jsonschema_rs.validator_for(json_schema())

    def takes(source: str) -> bool:
        return valid.is_valid(yaml.safe_load(approvals(f"from: {{a: {source}}}")))

    assert takes("{type: tail, path: /x, trust: transport}")
    assert takes("{sink: a, trust: transport}")
    assert takes("{sink: a, path: /x, trust: transport}")
    assert not takes("{sink: a}")
    assert not takes("{sink: a, type: tail, trust: transport}")
    assert not takes("{sink: a, pth: /x, trust: transport}")
    assert not takes("{type: tail, trust: transport}")
    assert not takes("{type: tail, path: /x, trust: maybe}")
    assert valid.is_valid(yaml.safe_load(approvals("from: null")))
