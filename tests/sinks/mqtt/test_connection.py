"""The credentials of an MQTT connection, from files as they are now."""

import pytest
from support.sink_settings import mqtt as configured

from sinks.mqtt.connection import log_in, make_connector


def test_credentials_are_equal_until_a_file_changes(tmp_path):
    password = tmp_path / "password"
    password.write_text("first-one")
    made = configured(username="ann", password={"file": str(password)}, tls=True, alpn=["mqtt"])
    before = log_in(made)
    assert log_in(made) == before
    assert "first-one" not in repr(make_connector(made, "me", 1))
    password.write_text("three")
    assert log_in(made).password == "three"
    assert log_in(made) != before


def test_alpn_protocols_have_their_own_tls_context():
    assert (
        log_in(configured(tls=True, alpn=["mqtt"])).context
        is not log_in(configured(tls=True)).context
    )


def test_a_line_break_in_a_header_is_not_sent(tmp_path):
    file = tmp_path / "token"
    file.write_text("a\r\nb: c")
    made = configured(transport="websockets", headers={"x": {"file": str(file)}})
    with pytest.raises(Exception, match="the header x contains line breaks"):
        log_in(made)
