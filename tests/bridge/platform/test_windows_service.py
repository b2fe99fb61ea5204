"""Commands for the Windows service, where there are none; `tests/windows` has the service itself."""

import sys

import pytest

from bridge.platform import ServiceError, windows_service

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are services here")


@pytest.mark.parametrize(
    "act",
    [windows_service.start_service, windows_service.stop_service, windows_service.remove_service],
)
def test_other_systems_have_no_windows_services(act):
    with pytest.raises(ServiceError, match="on Linux, use systemd"):
        act(1.0)
