import pytest

from bridge.config.syntax import MOST_VALUES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source:\n\tscope: own", ":2: is indented with a tab; use spaces"),
        ("source: }", ":1: is not YAML: "),
        ("a: b: c", ":1: is not YAML: mapping values are not allowed"),
        (
            "a: {secret: ${NAME}}",
            ":1: is not YAML: inside { } or [ ], a variable needs quotes: write",
        ),
        (
            "a:\n  tokens: [x, ${A}, b]",
            ":2: is not YAML: inside { } or [ ], a variable needs quotes",
        ),
        (
            "a: {url: https://${HOST}/x}",
            ":1: is not YAML: inside { } or [ ], a variable needs quotes",
        ),
        ("a: {secret: '$${NAME}', ]", ":1: is not YAML: did not find expected"),
        (b"a: \x00", ": contains characters that YAML does not allow"),
        ("source:\n  scope: own\n  scope: all", ":3: repeats the key 'scope'; give it once"),
        ("a: {<<: {}, <<: {}}", ":1: repeats the key '<<'; give it once"),
        ("source: {}\nsource: {}", ":2: repeats the key 'source'; give it once"),
        ("source: {}\n---\nsource: {}", ":2: starts a second document; write only one"),
        ("? [a]\n: b", ":1: has a key that is not text"),
        ("a: !!python/object:os.system x", ":1: has a tag; put text that begins with ! in quotes"),
        ("a: *b", ":1: has an alias without its anchor; put text that begins with * in quotes"),
        ("a: &a [*a]", ":1: has an alias without its anchor"),
        ("source: &s {scope: all}\njournal: {<<: [1]}", ":2: merges (<<) something that is not"),
        pytest.param("a: " + "[" * 200_000, ":1: is nested more than 40 deep", id="brackets"),
        pytest.param("a: " + "{b: " * 50, ":1: is nested more than 40 deep", id="braces"),
        pytest.param("- " * 50_000 + "a", ":1: is nested more than 40 deep", id="dashes"),
    ],
)
def test_unaccepted_yaml_is_reported_in_one_sentence(problems, text, said):
    [found] = problems(text)
    assert found.startswith(said)


def test_a_bomb_of_aliases_does_not_go_off(problems):
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    [found] = problems(bomb)
    assert f"contains more than {MOST_VALUES} values" in found


def test_anchors_and_merges_avoid_repetition(read):
    config = read("""
        sinks:
          a: &common {type: stdout, required: false, retry: &patient {max_age: 1d}}
          b: {<<: *common, required: true}
          c: {<<: [{stale: skip, required: true}, *common], retry: *patient}
    """)
    assert [sink.required for sink in config.sinks.values()] == [False, True, True]
    assert {sink.retry.max_age for sink in config.sinks.values()} == {86400}
    assert config.sinks["c"].stale == "skip"


def test_words_with_a_special_meaning_in_old_yaml_are_text(read):
    labels = read("""
        source:
          labels: {a: no, b: off, c: 012, d: 12:30, e: 2020-01-01, f: 1_000, g: .inf, h: 0x10, i: "1"}
    """).source.labels
    assert list(labels.values()) == [
        *("no", "off", "012", "12:30", "2020-01-01", "1_000", ".inf", "0x10", "1")
    ]
