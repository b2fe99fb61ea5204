"""How plugins are found, and the errors for those that cannot be loaded."""

import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

import bridge.plugins
from bridge.plugins import Misconfigured
from bridge.plugins.formats import installed_formats
from bridge.plugins.sinks import find_sink, installed_sinks


def test_the_error_for_an_unknown_type_lists_all_types():
    with pytest.raises(Misconfigured, match=r"no sink type 'stdou'; choose from .*file.*stdout"):
        find_sink("stdou")


@pytest.fixture
def entry_points(monkeypatch):
    """Let the installed packages name only these."""

    def name(*points):
        every = EntryPoints(points)
        monkeypatch.setattr(bridge.plugins.entry_points, "entry_points", lambda: every)

    bridge.plugins.entry_points.look_again()
    yield name
    bridge.plugins.entry_points.look_again()


def test_without_entry_points_the_error_says_what_to_do(entry_points):
    entry_points()
    with pytest.raises(Misconfigured, match="; install the package"):
        find_sink("stdout")


def test_what_is_installed_is_looked_up_once(entry_points, monkeypatch):
    entry_points(EntryPoint("odd", "odd_sink:sink", bridge.plugins.sinks.SINKS))
    assert set(installed_sinks()) == {"odd"}
    monkeypatch.delattr(bridge.plugins.entry_points, "entry_points")
    assert set(installed_sinks()) == {"odd"}


def test_one_lookup_is_enough_for_all_groups(entry_points, monkeypatch):
    entry_points(EntryPoint("odd", "odd_sink:sink", bridge.plugins.sinks.SINKS))
    assert set(installed_sinks()) == {"odd"}
    monkeypatch.delattr(bridge.plugins.entry_points, "entry_points")
    assert not installed_formats()


def test_a_sink_that_is_installed_later_is_found(plugin_module, entry_points):
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


@pytest.fixture
def two_packages(tmp_path, monkeypatch):
    """Two installed packages, each with a sink type `bell` of its own."""
    for package in ("loud-bells", "quiet-bells"):
        folder = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = f"[{bridge.plugins.sinks.SINKS}]\nbell = {package.replace('-', '_')}:sink\n"
        (folder / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    bridge.plugins.entry_points.look_again()
    yield
    bridge.plugins.entry_points.look_again()


@pytest.mark.usefixtures("two_packages")
def test_two_plugins_of_one_name_are_an_error_that_names_both_packages():
    with pytest.raises(Misconfigured) as told:
        find_sink("bell")
    assert str(told.value) == (
        "2 packages have a sink type 'bell': loud-bells (loud_bells:sink) and "
        "quiet-bells (quiet_bells:sink); keep one of them"
    )


@pytest.mark.usefixtures("two_packages")
def test_two_plugins_of_one_name_leave_the_other_types_alone():
    assert find_sink("stdout")
    assert "bell" in installed_sinks()


def test_a_sink_whose_library_is_missing_names_it(plugin_module):
    plugin_module("import no_such_library")
    with pytest.raises(Misconfigured, match=r"'odd' cannot be loaded: .*no_such_library") as told:
        find_sink("odd")
    assert "pip install" not in str(told.value), "what a stranger's sink needs is not our extra"


def test_a_sink_whose_package_has_an_extra_of_its_name_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    for name in [name for name in sys.modules if name.startswith("sinks.kafka")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(Misconfigured, match=r"pip install 'scheduled-events-bridge\[kafka\]'"):
        find_sink("kafka")


def test_a_sink_that_its_module_does_not_have_is_refused(plugin_module):
    plugin_module("other = 5")
    with pytest.raises(Misconfigured, match=r"'odd' cannot be loaded: .*sink"):
        find_sink("odd")


def test_what_is_not_a_plugin_is_refused(plugin_module):
    plugin_module("sink = 5")
    with pytest.raises(Misconfigured, match="odd_sink:sink is not a SinkPlugin"):
        find_sink("odd")
