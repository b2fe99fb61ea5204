import json

from support.command_line import parse

from bridge.cli.commands import schema


def test_schema_lists_names_and_prints_one(capsys):
    assert schema.run(parse(schema)) == 0
    names = capsys.readouterr().out.split()
    assert "config.v1" in names
    assert schema.run(parse(schema, "config.v1")) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


def test_an_unknown_schema_is_a_usage_error(capsys):
    assert schema.run(parse(schema, "confg")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("seb: there is no schema 'confg'")
