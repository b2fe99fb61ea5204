"""The address that a running bridge writes down, and whether a reader may believe it."""

import json
import os
import subprocess
import sys

import pytest

from bridge.config import Listen
from bridge.runtime.http_address import (
    FILE,
    HttpAddress,
    address_of,
    certificate_sha256,
    read_address,
    remove_address,
    write_address,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no file is trusted there")
HERE = HttpAddress("http://127.0.0.1:17245")


def change(folder, **changes):
    said = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps({**said, **changes}))


def test_what_a_running_bridge_wrote_is_read(tmp_path):
    write_address(tmp_path, HERE)
    assert read_address(tmp_path) == HERE
    assert [one.name for one in tmp_path.iterdir()] == [FILE]
    remove_address(tmp_path)
    assert read_address(tmp_path) is None
    remove_address(tmp_path)


def test_a_later_address_replaces_an_earlier_one(tmp_path):
    write_address(tmp_path, HERE)
    write_address(tmp_path, HttpAddress("https://127.0.0.1:1", "ab"))
    assert read_address(tmp_path) == HttpAddress("https://127.0.0.1:1", "ab")


def test_an_address_ends_with_its_process_even_if_that_was_killed(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from bridge.runtime.http_address import HttpAddress, write_address\n"
        "write_address(Path(sys.argv[1]), HttpAddress('http://127.0.0.1:17245'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / FILE).exists()
    assert read_address(tmp_path) is None


def test_an_address_of_an_earlier_boot_is_not_believed(tmp_path):
    write_address(tmp_path, HERE)
    change(tmp_path, boot="an earlier one")
    assert read_address(tmp_path) is None


def test_a_process_of_another_user_is_not_the_bridge(tmp_path):
    write_address(tmp_path, HERE)
    change(tmp_path, pid=1)
    assert (read_address(tmp_path) == HERE) is (os.geteuid() == 0)


def test_a_file_that_others_can_write_is_not_believed(tmp_path):
    write_address(tmp_path, HERE)
    (tmp_path / FILE).chmod(0o666)
    assert read_address(tmp_path) is None


def test_a_link_is_not_believed(tmp_path):
    (tmp_path / "real").mkdir()
    write_address(tmp_path / "real", HERE)
    (tmp_path / FILE).symlink_to(tmp_path / "real" / FILE)
    assert read_address(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 5}', "\udcff"])
def test_anything_else_is_not_an_address(tmp_path, text):
    (tmp_path / FILE).write_text(text, errors="surrogateescape")
    assert read_address(tmp_path) is None


def test_a_directory_that_cannot_be_written_gets_no_file(tmp_path):
    write_address(tmp_path / "missing", HERE)
    assert read_address(tmp_path / "missing") is None


def test_all_addresses_of_a_machine_include_loopback(tmp_path):
    assert address_of(Listen("0.0.0.0", 9), None) == HttpAddress("http://127.0.0.1:9")
    assert address_of(Listen("::", 9), None) == HttpAddress("http://[::1]:9")
    assert address_of(Listen("10.0.0.4", 9), None) == HttpAddress("http://10.0.0.4:9")
    missing = tmp_path / "none.pem"
    assert certificate_sha256(missing) is None
    assert address_of(Listen("127.0.0.1", 9), missing) == HttpAddress("https://127.0.0.1:9")
