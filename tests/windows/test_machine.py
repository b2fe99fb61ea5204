"""What the bridge learns from the machine itself: its boot, and the address that DHCP announced."""

import pytest
from support.wine import Wine

pytestmark = pytest.mark.timeout(300)
BOOT = "from bridge.platform import boot_id; print(boot_id())"
LEASE = """
import struct, time, winreg
from bridge.metadata.discovery import candidates
path = r"SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces\\{5EB}"
option = struct.pack("<5I", 245, 0, 4, 0, int(time.time()) + 3600) + bytes([169, 254, 7, 9])
with winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
    winreg.SetValueEx(key, "DhcpInterfaceOptions", 0, winreg.REG_BINARY, option)
print(*candidates(), sep="\\n")
winreg.DeleteKey(winreg.HKEY_LOCAL_MACHINE, path)
"""


async def output(wine: Wine, program: str) -> str:
    code, said = await wine.run("-I", "-c", program)
    assert code == 0, said
    return said.strip()


async def test_a_boot_has_an_id_of_its_own_that_a_restart_of_the_bridge_keeps(wine: Wine):
    first = await output(wine, BOOT)
    assert await output(wine, BOOT) == first
    wine.shut_down()
    wine.boot()
    assert await output(wine, BOOT) != first


async def test_the_address_that_dhcp_announced_is_a_candidate(wine: Wine):
    said = await output(wine, LEASE)
    assert "url='http://169.254.7.9', origin='registry {5EB}', refused=False" in said
