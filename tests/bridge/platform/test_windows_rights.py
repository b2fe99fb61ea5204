"""Who may use what on Windows: the texts everywhere, the rights themselves under Wine."""

import sys
from pathlib import Path

import pytest

from bridge.platform import windows, windows_rights

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="`make test-windows` runs it")


def test_the_sid_of_a_service_is_the_one_that_windows_gives_it():
    """Microsoft publishes this one, of the service that installs Windows itself."""
    known = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
    assert windows_rights.service_sid("TrustedInstaller") == known


def test_a_directory_is_for_the_system_administrators_and_who_is_named():
    text = windows_rights.sddl(windows_rights.entry("S-1-5-80-1", windows_rights.READ))
    assert text == "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;S-1-5-80-1)"
    assert windows_rights.sddl(kind="CI") == "D:P(A;CI;KA;;;SY)(A;CI;KA;;;BA)"


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", False),
        ("O:BAD:AI(A;ID;FA;;;SY)(A;ID;0x1200a9;;;BU)", True),
        ("O:BAD:(A;;FR;;;WD)", True),
        ("O:BAD:(D;;FA;;;WD)(A;;FA;;;BA)", False),
        ("O:BAD:NO_ACCESS_CONTROL", True),
        ("O:BA", True),
    ],
)
def test_what_all_users_may_open_is_found(text, is_open):
    assert windows_rights.open_to_everybody(text) is is_open


@on_windows
def test_a_private_directory_is_for_its_owner_and_not_for_everybody(tmp_path):
    path = windows.private_directory(tmp_path / "a" / "state")
    windows.private_directory(path)
    assert f";;;{windows_rights.user_sid()})" in windows_rights.rights_of(str(path))
    assert not windows.open_to_others(path)
    windows_rights.set_rights(str(path), "D:P(A;OICI;FA;;;BA)(A;OICI;FR;;;WD)")
    assert windows.open_to_others(path)


@on_windows
def test_a_file_in_the_way_of_a_directory_is_an_error(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(OSError):
        windows.private_directory(tmp_path / "state")


@on_windows
def test_what_is_not_there_is_not_open(tmp_path: Path):
    assert not windows.open_to_others(tmp_path / "nothing")
