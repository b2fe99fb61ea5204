import json

import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from support.chat_rules import ill_meant, told_of
from support.cloudevents import HOSTILE

from bridge.plugins import Rejected, read_format
from bridge.plugins.formats import find_format

PLUGIN = find_format("template")
TEXT = "text/plain; charset=utf-8"


def made(template: str, **keys):
    return PLUGIN.open(read_format({"type": "template", "template": template} | keys))


def filled(template: str, cloudevent=None, **keys) -> str:
    return made(template, **keys).encode(cloudevent or told_of("scheduled")).decode()


def why_rejected(template: str, cloudevent=None, **keys) -> str:
    form = made(template, **keys)
    with pytest.raises(Rejected) as told:
        form.encode(cloudevent or told_of("scheduled"))
    return str(told.value)


def why_refused(**keys) -> str:
    with pytest.raises(ValidationError) as told:
        read_format({"type": "template"} | keys)
    return str(told.value)


def test_attributes_data_and_our_words_for_it_can_be_put_in():
    text = "{{ type }} {{ data.eventType }} {{ data['resources'] | join('+') }}: {{ headline }}"
    assert filled(text, content_type=TEXT) == (
        "azure.scheduledevents.scheduled.v1 Reboot FrontEnd_IN_0+BackEnd_IN_0: "
        "In 14 min: Reboot of FrontEnd_IN_0 and BackEnd_IN_0"
    )
    assert filled("{{ sentence }}", content_type=TEXT).startswith("Azure will reboot")
    assert filled("{{ todo }}", content_type=TEXT).startswith("seb approve 602D9444")


def test_json_is_the_usual_output_and_the_filter_json_writes_whole_values():
    form = made(
        '{"all": {{ data | json }}, "vms": {{ data.resources | json }}, "id": {{ id | json }}}'
    )
    assert form.content_type == "application/json"
    cloudevent = told_of("scheduled", description=HOSTILE)
    assert json.loads(form.encode(cloudevent)) == {
        "all": cloudevent.data,
        "vms": cloudevent.data["resources"],
        "id": cloudevent.id,
    }


def test_what_is_put_into_json_cannot_break_out_of_its_string():
    template = '{"text": "{{ data.description }}", "safe": "{{ data.description | safe }}"}'
    for text in ('"}, "text": "forged', "\\", "\n\x00\u2028", HOSTILE):
        found = json.loads(filled(template, told_of("scheduled", description=text)))
        assert found == {"text": text, "safe": text}


def test_in_json_other_values_are_written_as_json_has_them():
    template = "[{{ data.approvable }}, {{ data.durationInSeconds }}, {{ data.previousStatus }}, {{ data.resources }}]"
    assert json.loads(filled(template)) == [True, -1, None, ["FrontEnd_IN_0", "BackEnd_IN_0"]]


@pytest.mark.fuzz
@settings(max_examples=25)
@given(ill_meant())
def test_with_any_input_the_json_has_the_shape_of_the_template(cloudevent):
    form = made('{"a": "{{ sentence }}", "b": "{{ data.description }}", "c": {{ data.get("x") }}}')
    try:
        body = form.encode(cloudevent)
    except Rejected as error:
        said = str(error)
        assert "more than 65536 bytes" in said or "has no attribute 'description'" in said
        return
    assert len(body) <= 65536
    assert json.loads(body).keys() == {"a", "b", "c"}


def test_conditions_and_loops_work():
    template = "{% for vm in data.resources %}{{ loop.index }}={{ vm }} {% endfor %}{% if data.drill %}drill{% endif %}"
    assert filled(template, content_type=TEXT) == "1=FrontEnd_IN_0 2=BackEnd_IN_0 "
    numbers = "{% for n in range(3) %}{{ n }}{% endfor %}"
    assert filled(numbers, content_type=TEXT) == "012"


def test_output_that_is_not_json_is_rejected_with_the_place():
    assert why_rejected('{"a": }') == (
        "the output of the template is not JSON: Expecting value at line 1, column 7"
    )


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ causationid }}", "'causationid' is undefined"),
        ("{{ data.eventtype }}", "has no attribute 'eventtype'"),
        ("{{ data.nothing | json }}", "has no attribute 'nothing'"),
        ("{{ data.observer.nothing.more }}", "has no attribute 'nothing'"),
    ],
)
def test_what_a_cloudevent_lacks_is_named(template, name):
    for kind in (TEXT, "application/json"):
        said = why_rejected(template, content_type=kind)
        assert said.startswith("the template cannot be filled: ")
        assert name in said


@pytest.mark.parametrize(
    "template",
    [
        "{{ data.__class__ }}",
        "{{ data.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''.__class__.__base__ }}",
        "{{ data['__class__'].x }}",
        "{{ data.resources.append('x') }}",
        "{{ data.update({'a': 1}) }}",
        "{{ data.get.__globals__ }}",
        "{{ '{0.__class__.__mro__}'.format(data) }}",
        "{{ range.__self__ }}",
        "{{ (data | attr('__class__')).__mro__ }}",
    ],
)
def test_no_template_escapes_the_sandbox(template):
    assert "cannot be filled" in why_rejected(template, content_type=TEXT)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for n in range(10**9) %}{% endfor %}", "** is not allowed"),
        ("{% for n in range(100001) %}{% endfor %}", "range may yield 10000 numbers in all"),
        (
            "{% for a in range(999) %}{% for b in range(999) %}{% endfor %}{% endfor %}",
            "range may yield 10000 numbers in all",
        ),
        ("{{ 'x' * 1000 }}", "* is not allowed here"),
        ("{{ [0] * 1000 }}", "* is not allowed here"),
        ("{% for n in range(9999) %}xxxxxxxxxx{% endfor %}", "more than 65536 bytes"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 1 + 'a' }}", "unsupported operand"),
        ("{{ data.resources[9].x }}", "has no element 9"),
    ],
)
def test_what_runs_away_is_stopped(template, said):
    assert said in why_rejected(template, content_type=TEXT)


def test_numbers_may_be_multiplied():
    assert filled("{{ 6 * 7 }}", content_type=TEXT) == "42"


def test_each_filling_has_its_own_steps():
    form = made("{% for n in range(9000) %}{% endfor %}1")
    for _ in range(3):
        assert form.encode(told_of("scheduled")) == b"1"


# The keys


def test_a_template_may_stand_in_a_file_and_counts_as_it_was_read(tmp_path):
    file = tmp_path / "body.j2"
    file.write_text('{"kind": "{{ type }}"}\n')
    read = read_format({"type": "template", "file": str(file)})
    before = PLUGIN.open(read)
    file.write_text("[]")
    assert json.loads(before.encode(told_of("started"))) == {"kind": told_of("started").type}
    assert read != read_format({"type": "template", "file": str(file)}), "a reload must see it"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "needs either template or file"),
        ({"template": "a", "file": "b"}, "needs either template or file"),
        ({"template": ""}, "at least 1 character"),
        ({"template": "x" * 65537}, "at most 65536 characters"),
        ({"template": "a\n{{ id"}, "the template, line 2: unexpected end of template"),
        ({"template": "{% if %}"}, "the template, line 1: Expected an expression"),
        ({"template": "{{ id | shout }}"}, "the template, line 1: No filter named 'shout'"),
        ({"template": "{{ dta.x }}"}, "dta: unknown variable; did you mean data?"),
        ({"template": "{{ xyzzy }}"}, "xyzzy: unknown variable; choose from causationid, "),
        ({"template": "{% include 'x' %}"}, "no other template to include"),
        ({"template": "{% extends 'x' %}"}, "no other template to include"),
        ({"template": "{{ lipsum() }}"}, "lipsum: unknown variable"),
        ({"template": "a", "content_type": "a/b\r\nX: y"}, "content_type"),
        ({"file": "/nonexistent/body.j2"}, "/nonexistent/body.j2 cannot be read: No such file"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_loaded(keys, said):
    assert said in why_refused(**keys)


def test_a_file_that_is_not_a_template_is_refused(tmp_path):
    file = tmp_path / "body.j2"
    for content, said in (
        (b"\xff", "is not UTF-8"),
        (b"", "1 to 65536"),
        (b"x" * 70000, "1 to 65536"),
    ):
        file.write_bytes(content)
        assert said in why_refused(file=str(file))
    file.write_text("{% for %}")
    assert f"{file}, line 1: " in why_refused(file=str(file))


def test_old_news_is_told_too_unless_the_sink_says_otherwise():
    assert PLUGIN.stale == "deliver"
