import sys
from importlib.metadata import EntryPoint

import pytest
from pydantic import ValidationError

import bridge.plugins
from bridge.plugins import (
    Misconfigured,
    Place,
    Retry,
    SinkPlugin,
    SinkSettings,
    Unavailable,
    find_sink,
    installed_sinks,
)

PLACE = Place(
    {"vm_name": "web-1", "vm_id": None, "location": "west/europe", "resource_group": "..", "x": "#"}
)


def test_the_exported_names_are_those_that_sinks_may_use():
    exported = bridge.plugins.__all__
    assert sorted(exported) == sorted(set(exported))
    assert all(hasattr(bridge.plugins, name) for name in exported)
    needed = {"CloudEvent", "Place", "Rejected", "Result", "Send", "SinkPlugin", "SinkSettings"}
    assert needed | {"Unavailable", "Duration", "Size", "Secret", "Settings"} <= set(exported)


def test_our_own_sinks_come_through_the_door_that_is_open_to_all():
    assert {"stdout", "file"} <= set(installed_sinks())
    for kind in ("stdout", "file"):
        assert isinstance(find_sink(kind), SinkPlugin)


def test_an_unknown_type_is_answered_with_those_that_there_are():
    with pytest.raises(Misconfigured, match=r"no sink type 'stdou'; there are .*file.*stdout"):
        find_sink("stdou")


@pytest.fixture
def entry_points(monkeypatch):
    """Let the packages that are installed name these, and no others."""

    def name(*points):
        monkeypatch.setattr(bridge.plugins.entry_points, "entry_points", lambda group: points)

    bridge.plugins.entry_points.installed.cache_clear()
    yield name
    bridge.plugins.entry_points.installed.cache_clear()


def test_without_entry_points_the_error_says_what_to_do(entry_points):
    entry_points()
    with pytest.raises(Misconfigured, match="none: install the package"):
        find_sink("stdout")


def test_what_is_installed_is_looked_up_once(entry_points, monkeypatch):
    entry_points(EntryPoint("odd", "odd_sink:sink", bridge.plugins.sinks.SINKS))
    assert set(installed_sinks()) == {"odd"}
    monkeypatch.delattr(bridge.plugins.entry_points, "entry_points")
    assert set(installed_sinks()) == {"odd"}


def test_a_sink_that_was_installed_since_then_is_found_all_the_same(plugin_module, entry_points):
    entry_points()
    assert not installed_sinks()
    plugin_module("from sinks.stdout import sink")
    assert find_sink("odd") is find_sink("odd")


@pytest.fixture
def plugin_module(tmp_path, monkeypatch, entry_points):
    """Write a module and make `odd` a sink type that names it."""

    def write(text, value="odd_sink:sink"):
        (tmp_path / "odd_sink.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "odd_sink", raising=False)
        entry_points(EntryPoint("odd", value, bridge.plugins.sinks.SINKS))

    yield write
    sys.modules.pop("odd_sink", None)


def test_a_sink_whose_library_is_missing_names_it(plugin_module):
    plugin_module("import no_such_library")
    with pytest.raises(Misconfigured, match=r"'odd' cannot be loaded: .*no_such_library") as told:
        find_sink("odd")
    assert "pip install" not in str(told.value), "what a stranger's sink needs is not our extra"


def test_a_sink_that_its_module_does_not_have_is_refused(plugin_module):
    plugin_module("other = 5")
    with pytest.raises(Misconfigured, match=r"'odd' cannot be loaded: .*sink"):
        find_sink("odd")


def test_what_is_not_a_plugin_is_refused(plugin_module):
    plugin_module("sink = 5")
    with pytest.raises(Misconfigured, match="odd_sink:sink is not a SinkPlugin"):
        find_sink("odd")


def test_names_are_filled_in():
    assert PLACE.fill("events/{vm_name}/{subject}", subject="A-1") == "events/web-1/A-1"
    assert PLACE.fill("nothing") == "nothing"


@pytest.mark.parametrize(
    ("name", "value"), [("location", "west_europe"), ("resource_group", "_"), ("x", "_")]
)
def test_a_name_never_leaves_its_topic_level_or_directory(name, value):
    assert PLACE.fill(f"a/{{{name}}}/b") == f"a/{value}/b"


def test_a_name_from_the_cloudevent_is_made_safe_too():
    assert PLACE.fill("{subject}", subject="../+/#") == "..____"


@pytest.mark.parametrize("name", ["vm_id", "subscription"])
def test_a_name_that_is_not_known_yet_is_unavailable(name):
    with pytest.raises(Unavailable, match=f"{{{name}}} is not known yet"):
        PLACE.fill(f"{{{name}}}")


def test_templates_are_validated_without_their_values():
    assert Place.validate("a/{vm_name}/{location}") == "a/{vm_name}/{location}"
    assert Place.validate("{subject}", "subject") == "{subject}"
    for wrong in ("{subject}", "{vm}", "{}", "a{ vm_name }"):
        with pytest.raises(ValueError, match="is not known; there are observer, vm_name"):
            Place.validate(wrong)


def test_unavailable_may_say_when_to_come_back():
    assert Unavailable("busy").retry_after is None
    assert Unavailable("busy", retry_after=3.0).retry_after == 3.0
    assert str(Unavailable("busy")) == "busy"


def test_the_keys_of_all_sinks_have_the_documented_defaults():
    settings = SinkSettings(type="any")
    assert settings.required is True
    assert settings.stale == "deliver"
    assert (settings.retry.max_age, settings.retry.timeout) == (7 * 86400, 10)
    assert (settings.only.types, settings.only.event_types) == (None, None)
    assert settings.describe() == "is a sink of type any"


def test_an_attempt_needs_some_time():
    with pytest.raises(ValidationError, match="greater than 0"):
        Retry.model_validate({"timeout": "0s"})


def test_the_json_schema_of_a_sink_is_complete():
    schema = find_sink("file").settings.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"type", "path"}
    assert {"only", "retry", "stale", "max_size"} <= set(schema["properties"])
