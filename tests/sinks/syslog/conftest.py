"""One rsyslog and one authority for all tests of the syslog sink."""

import pytest
from support.certificates import Certificates, issue
from support.rsyslog import Rsyslog


@pytest.fixture(scope="package")
def certificates(tmp_path_factory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")
def shared_rsyslog(tmp_path_factory, certificates):
    with Rsyslog(tmp_path_factory.mktemp("rsyslog"), certificates) as made:
        yield made


@pytest.fixture
def rsyslog(shared_rsyslog) -> Rsyslog:
    """Up and about, whatever the test before did to it."""
    if not shared_rsyslog.runs:
        shared_rsyslog.start()
    shared_rsyslog.resume()
    return shared_rsyslog
