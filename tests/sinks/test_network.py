import ssl
from socket import gaierror

import pytest

from sinks._network import Reasons, why


def tls_error(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "as OpenSSL says it")
    vars(error)["reason"] = reason  # OpenSSL has none for some
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(), "nothing listens there"),
        (gaierror(-2, "Name or service not known"), "its name cannot be resolved"),
        (UnicodeError("label too long"), "its name cannot be resolved"),
        (OSError(113, "No route to host"), "No route to host"),
        (OSError("in words only"), "in words only"),
        (OSError(), "OSError"),
        (ssl.SSLCertVerificationError(1, "too old"), "its certificate is not accepted: too old"),
        (tls_error("WRONG_VERSION_NUMBER"), "it does not use TLS on this port"),
        (tls_error("PACKET_LENGTH_TOO_LONG"), "it does not use TLS on this port"),
        (tls_error("RECORD_LAYER_FAILURE"), "it does not use TLS on this port"),
        (
            tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            "it rejects our TLS (certificate required); does it need a client certificate?",
        ),
        (tls_error("ODD"), "TLS failed: ODD"),
        (tls_error(None), "TLS failed: as OpenSSL says it"),
        (RuntimeError("odd"), "odd"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_every_failure_has_a_sentence(error, said):
    assert why(error) == said


def test_the_most_exact_kind_of_error_speaks():
    own: Reasons = {
        ConnectionError: "it closed the connection",
        Exception: lambda error: f"odd: {error}",
    }
    assert why(BrokenPipeError(), own) == "it closed the connection"
    assert why(ConnectionRefusedError(), own) == "nothing listens there"
    assert why(RuntimeError("x"), own) == "odd: x"


def test_a_sinks_own_words_go_before_the_usual_ones():
    assert why(gaierror(), {gaierror: "who is that"}) == "who is that"
