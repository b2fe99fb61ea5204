"""The credentials of a Kafka connection, from files as they are now."""

import logging

import pytest
from support.sink_settings import kafka as configured

from bridge.plugins import Unavailable
from sinks.kafka.connection import log_in

PASSWORD = {"username": "ann", "password": "s3cret"}
IDENTITY = {"managed_identity": {"resource": "https://a.b"}}
OAUTH = {"token_url": "https://login.example/t", "client_id": "a", "client_secret": "b"}


def test_the_options_change_only_when_a_file_does(tmp_path):
    password = tmp_path / "password"
    password.write_text("one")
    sasl = {"mechanism": "PLAIN", "username": "ann", "password": {"file": str(password)}}
    made = configured(sasl=sasl)
    before = log_in(made)
    assert before["sasl_plain_password"] == "one"
    assert log_in(made) == before
    password.write_text("three")
    assert log_in(made)["sasl_plain_password"] == "three"
    password.unlink()
    with pytest.raises(Unavailable, match="the SASL password cannot be read from"):
        log_in(made)


def test_a_token_source_is_the_same_option_each_time():
    sasl = {"mechanism": "OAUTHBEARER", **IDENTITY, "extensions": {"pool": "p"}}
    made = configured(sasl=sasl)
    assert log_in(made) == log_in(made)
    assert log_in(made)["sasl_oauth_token_provider"].extensions() == {"pool": "p"}


@pytest.mark.parametrize(
    ("keys", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"tls": True}, "SSL"),
        ({"sasl": {"mechanism": "PLAIN", **PASSWORD}}, "SASL_PLAINTEXT"),
        ({"tls": True, "sasl": {"mechanism": "OAUTHBEARER", "oauth": OAUTH}}, "SASL_SSL"),
    ],
)
def test_the_protocol_follows_from_the_keys(keys, protocol):
    assert log_in(configured(**keys))["security_protocol"] == protocol


def test_the_library_does_not_log_what_results_say_nor_quote_passwords():
    names = [name for name in logging.root.manager.loggerDict if name.startswith("aiokafka")]
    assert names
    assert not any(logging.getLogger(name).isEnabledFor(logging.ERROR) for name in names)
