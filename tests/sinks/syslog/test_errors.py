"""What the syslog sink says of a receiver that is gone."""

import ssl

import pytest

from sinks.syslog.errors import why


@pytest.mark.parametrize("error", [ConnectionResetError(), BrokenPipeError(), ssl.SSLEOFError()])
def test_one_who_hangs_up_is_said_to(error):
    assert why(error) == "it closed the connection"


def test_over_tls_a_closed_connection_may_be_about_certificates():
    assert why(ConnectionResetError(), tls=True).startswith(
        "it closed the connection; perhaps it does not accept the client"
    )
    assert why(ConnectionRefusedError(), tls=True) == "nothing listens there"
