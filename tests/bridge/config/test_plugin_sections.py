from pathlib import Path
from typing import Literal

import pytest
from support.config_text import TAIL_SOURCE, WHSEC, approvals, in_format
from support.third_party_source import TailSettings, follow

import bridge.config.plugin_sections
from bridge.common.fields import Secret
from bridge.plugins import ApprovalPlugin


def test_a_sinks_name_may_have_63_characters(read, problems):
    assert read(f"sinks: {{{'a' * 63}: {{type: stdout}}}}").sinks
    assert problems(f"sinks: {{{'a' * 64}: {{type: stdout}}}}")


def test_a_format_is_named_alone_or_with_its_keys(read):
    assert read(in_format("cloudevents")).sinks["out"].format.type == "cloudevents"
    assert read(in_format("{type: cloudevents}")) == read(in_format("cloudevents"))
    paged = read(in_format("{type: pagerduty, routing_key: '${KEY}'}"), KEY="k").sinks["out"]
    assert paged.format.routing_key == Secret("k")
    assert read(in_format("null")).sinks["out"].format is None


def test_a_chat_skips_outdated_states_unless_the_sink_says_otherwise(read):
    assert read(in_format("cloudevents")).sinks["out"].stale == "deliver"
    assert read(in_format("slack")).sinks["out"].stale == "skip"
    kept = in_format("slack") + "    stale: deliver\n"
    assert read(kept).sinks["out"].stale == "deliver"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("slak", ".format: there is no format type 'slak'; choose from "),
        ("{type: slak}", ".format: there is no format type 'slak'; choose from "),
        ("7", ".format: must be a format's name, or {type: NAME, …}; choose from "),
        ("[slack]", ".format: must be a format's name, or {type: NAME, …}; choose from "),
        ("{}", ".format: must be a format's name, or {type: NAME, …}; choose from "),
        ("pagerduty", ".format.routing_key: is missing"),
        ("{type: pagerduty, routing_key: 7}", ".format.routing_key: a secret must be text"),
        (
            "{type: pagerduty, routing_kye: a, routing_key: b}",
            ".format.routing_kye: unknown key; did you mean routing_key?",
        ),
        (
            "{type: pagerduty, routing_key: a, started: resolve}",
            ".format.started: 'resolve' is not allowed; it must be 'trigger' or 'acknowledge'",
        ),
        ("{type: slack, color: red}", ".format.color: unknown key; choose from type"),
        ("template", ".format: needs either template or file"),
        ("{type: template, template: '{{ id'}", ".format: the template, line 1: unexpected end"),
        ("{type: template, file: /no/such}", ".format: /no/such cannot be read: No such file"),
    ],
)
def test_errors_in_a_format_are_explained_at_its_key(problems, written, said):
    [found] = problems(in_format(written))
    assert found.startswith(f":4: sinks.out{said}")


def test_a_wrong_key_in_a_format_is_reported_with_its_line(problems):
    text = in_format("\n      type: template\n      template: a\n      content-type: b")
    assert problems(text) == [
        ":7: sinks.out.format.content-type: unknown key; did you mean content_type?"
    ]


def test_a_source_is_read_by_its_own_plugin(read, tail):
    found = read(approvals(f"from: {{{TAIL_SOURCE}}}", "dry_run: true", "require: any"))
    assert found.approvals.sources["votes"].path == Path("/topic")
    assert found.approvals.dry_run


def test_a_source_may_use_only_the_connection_of_a_sink(read, monkeypatch):
    class Both(TailSettings):
        type: Literal["file"]  # type: ignore[assignment]  # the type of a sink, too

        def overlaps(self, sink):
            return False

    both = ApprovalPlugin(settings=Both, open=follow)
    monkeypatch.setattr(bridge.config.plugin_sections, "find_approvals", lambda kind: both)
    sinks = "{a: {type: file, path: /shared, required: false}}"
    found = read(approvals("from: {votes: {sink: a, trust: transport}}", sinks=sinks))
    assert found.approvals.sources["votes"] == Both(type="file", path="/shared", trust="transport")
    own = "from: {votes: {sink: a, path: /own, trust: transport}}"
    assert read(approvals(own, sinks=sinks)).approvals.sources["votes"].path == Path("/own")


def test_empty_sources_count_as_absent(read):
    for given in ("from: null", "from: {}", "margin: 5s"):
        assert read(approvals(given)).approvals.sources == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sinks: [a]", "must be a mapping of names to settings"),
        ("sinks: {Bus: {type: stdout}}", "sinks.Bus: a sink's name has at most 63 characters"),
        ("sinks: {-a: {type: stdout}}", "sinks.-a: a sink's name"),
        ("sinks: {a: {}}", "sinks.a: needs a type; choose from"),
        ("sinks: {a: }", "sinks.a: needs a type; choose from"),
        ("sinks: {a: {type: 1}}", "sinks.a: needs a type; choose from"),
        ("sinks: {a: {type: telegraph}}", "there is no sink type 'telegraph'; choose from"),
        ("sinks: {a: {type: file}}", "sinks.a.path: is missing"),
        ("sinks: {a: {type: stdout, retry: {timeout: 0s}}}", "must be more than 0ms"),
    ],
)
def test_errors_in_a_sink_are_explained(problems, text, said):
    [found] = problems(text)
    assert said in found
    assert found.startswith(":1: ")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("from: [a]", "approvals.from: must be a mapping of names to settings"),
        ("from: {a: {trust: transport}}", "approvals.from.a: needs a type; choose from"),
        ("from: {a: {type: tail, path: /x}}", "approvals.from.a.trust: is missing; write transport or signed (transport: the broker's"),
        ("from: {a: {type: tail, path: /x, trust: me}}", "'transport' or 'signed'"),
        ("from: {a: {type: tail, path: /x, trust: signed}}", "signed needs a key in approvals"),
        ("from: {a: {type: telegraph, trust: transport}}", "no approval source type 'telegraph'"),
        ("from: {A: {type: tail, path: /x, trust: transport}}", "an approval source's name has"),
        ("from: {a: {type: tail, path: /x, trust: transport, x: 1}}", "approvals.from.a.x: unknown"),
        ("from: {a: {sink: b, trust: transport}}", "approvals.from.a.sink: there is no sink 'b'"),
        ("from: {a: {sink: 7, trust: transport}}", "there is no sink 7"),
        ("from: {a: {sink: a, type: tail, trust: transport}}", "cannot be combined with type"),
        ("from: {b: {sink: a, trust: transport}}", "no approval source type 'file'; choose from"),
        ("from: {b: {type: tail, path: /a, trust: transport}}", "where sink a publishes"),
        ("from: {http: {type: tail, path: /x, trust: transport}}", "a reserved name"),
        (f"from: {{a: {{type: tail, path: /x, trust: signed}}}}, allow: [{{approver: a, via: b, keys: [{{hmac: {WHSEC}}}]}}]",
         "signed needs a key in approvals"),
    ],
)  # fmt: skip
def test_errors_in_a_source_are_explained(problems, tail, keys, said):
    [found] = problems(approvals(keys))
    assert said in found


MQTT = "type: mqtt, host: 127.0.0.1, client_id: 'seb-{vm_id}'"


def test_two_connections_cannot_have_the_same_client_id_at_one_server(problems):
    votes = "topic: votes, trust: transport"
    text = f"sinks: {{floor: {{{MQTT}}}}}\napprovals: {{from: {{votes: {{{MQTT}, {votes}}}}}}}"
    (one,) = problems(text)
    assert one.startswith(":2: approvals.from.votes: has the same client id seb-{vm_id} at ")
    assert one.endswith("127.0.0.1:1883 as sink floor; a server ends one of them for the other")
    (two,) = problems(f"sinks: {{one: {{{MQTT}}}, two: {{{MQTT}, topic: b}}}}")
    assert "sinks.two: has the same client id" in two


def test_client_ids_may_be_the_same_at_different_servers(read):
    assert read(f"sinks: {{one: {{{MQTT}}}, two: {{{MQTT}, port: 1884}}}}")
    assert read("sinks: {a: {type: mqtt, host: b}, b: {type: mqtt, host: b}}")
