"""Where the bridge is, from files in every state."""

from pathlib import Path

import pytest

from bridge.cli.location import Location, read_location
from bridge.config import ConfigError, Listen
from bridge.config.models import DEFAULT_LISTEN
from bridge.platform import state_dirs


def read(tmp_path, text, **environ):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return read_location(file, environ)


def test_a_good_file_says_where_the_bridge_is(tmp_path):
    text = (
        "state_dir: /srv/${NAME}\n"
        "http: {listen: 127.0.0.1:9, tls: {certificate: /etc/cert.pem, key: /etc/key.pem}}\n"
    )
    assert read(tmp_path, text, NAME="seb") == Location(
        state_dirs=(Path("/srv/seb"),),
        listen=Listen("127.0.0.1", 9),
        tls=True,
        certificate=Path("/etc/cert.pem"),
    )


def test_without_a_file_it_is_at_the_default_places(tmp_path, monkeypatch):
    monkeypatch.setattr("bridge.platform.config_file", lambda: tmp_path / "none.yaml")
    found = read_location(None, {})
    assert (found.state_dirs, found.listen) == (tuple(state_dirs()), DEFAULT_LISTEN)
    assert found.warnings == ()


def test_http_may_be_off(tmp_path):
    assert read(tmp_path, "http: {listen: null}").listen is None


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "state_dir: 5",
            "state_dir in the configuration cannot be used; assuming the default one.",
        ),
        (
            "state_dir: ~/x",
            "state_dir in the configuration cannot be used; assuming the default one.",
        ),
        (
            "state_dir: /${UNSET}",
            "state_dir in the configuration cannot be used; assuming the default one.",
        ),
        (
            "http: {listen: 5}",
            "http.listen in the configuration is wrong; assuming 127.0.0.1:17245.",
        ),
    ],
)
def test_a_wrong_value_is_a_warning_and_the_default_is_taken(tmp_path, text, warning):
    found = read(tmp_path, text)
    assert found.warnings == (warning,)
    assert (found.state_dirs, found.listen) == (tuple(state_dirs()), DEFAULT_LISTEN)


@pytest.mark.parametrize(
    "spelled", ["/srv/seb", "'/srv/seb'", '"/srv/seb"  # here', "/srv/seb # here"]
)
def test_the_state_directory_is_read_even_from_a_file_that_is_not_yaml(tmp_path, spelled):
    found = read(tmp_path, f"sinks: [\nstate_dir: {spelled}\n")
    assert found.state_dirs == (Path("/srv/seb"),)
    [warning] = found.warnings
    assert "config.yaml:" in warning
    assert warning.endswith("; assuming state_dir: /srv/seb and the default http.listen.")


def test_a_file_that_is_not_yaml_and_names_no_directory_means_the_default_places(tmp_path):
    found = read(tmp_path, "a: [")
    assert found.state_dirs == tuple(state_dirs())
    assert found.warnings[0].endswith(
        "; assuming the default state_dir and the default http.listen."
    )


def test_the_file_of_the_environment_may_be_gone_but_not_one_that_the_user_names(tmp_path):
    missing = tmp_path / "none.yaml"
    assert len(read_location(None, {"SEB_CONFIG": str(missing)}).warnings) == 1
    with pytest.raises(ConfigError, match="No such file"):
        read_location(missing, {})
