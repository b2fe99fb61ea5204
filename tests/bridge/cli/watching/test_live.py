"""The live view on a real terminal: news, countdown, resize, a restart of the bridge, Ctrl-C."""

import signal

import pytest
from support.served_bridge import announce, bridge, config, end
from support.voting_bridge import write_config
from support.world import OTHER

pytest.importorskip("termios", reason="a terminal of POSIX")
from support.terminal import on_terminal

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
LEAVE = "\x1b[?25h\x1b[?1049l"


@pytest.fixture
def file(tmp_path):
    return write_config(tmp_path / "seb.yaml", state_dir=str(tmp_path), http={"listen": None})


async def test_the_view_follows_what_happens_and_the_size_of_the_terminal(tmp_path, file):
    async with bridge(config(tmp_path)) as made:
        await announce(made.journal, FIRST)
        await announce(made.journal, FIRST, description="another one")
        async with on_terminal("watch", "-c", str(file)) as terminal:
            await terminal.see(lambda: "updated            602D9444" in terminal.text())
            await terminal.see(lambda: "scheduled          602D9444" in terminal.text())
            await terminal.see(lambda: "602D9444  Reboot  Scheduled  14m" in terminal.text())
            first = terminal.lines()[3]
            await terminal.see(lambda: terminal.lines()[3] != first, "the countdown")
            await announce(made.journal, SECOND)
            await terminal.see(lambda: "2 pending" in terminal.text())
            assert max(map(len, terminal.lines())) <= 80
            terminal.resize(60, 12)
            await terminal.see(lambda: len(terminal.lines()) == 12, "the smaller picture")
            assert max(map(len, terminal.lines())) <= 60
            terminal.resize(80, 24)
            await end(made.journal, SECOND)
            await terminal.see(lambda: "completed          C7061BAC" in terminal.text())
            terminal.type("\x03")
            assert await terminal.process.wait() == 130
            await terminal.see(lambda: terminal.raw.endswith(LEAVE), "the old screen")
    assert "Traceback" not in terminal.raw


async def test_it_waits_for_a_bridge_that_restarts(tmp_path, file):
    async with bridge(config(tmp_path)) as made:
        await announce(made.journal, FIRST)
    async with on_terminal("watch", "--follow", "-c", str(file)) as terminal:
        await terminal.see(lambda: "No bridge is running here" in terminal.text())
        async with bridge(config(tmp_path)):
            await terminal.see(lambda: "1 pending" in terminal.text())
            assert "Trying again" not in terminal.text()
        await terminal.see(lambda: "Trying again" in terminal.text())
        terminal.process.send_signal(signal.SIGTERM)
        assert await terminal.process.wait() == 130
        await terminal.see(lambda: terminal.raw.endswith(LEAVE), "the old screen")


async def test_own_leaves_out_events_of_other_vms(tmp_path, file):
    async with bridge(config(tmp_path)) as made:
        await announce(made.journal, FIRST, resources=(OTHER,))
        await announce(made.journal, SECOND)
        async with on_terminal("watch", "--own", "-c", str(file)) as terminal:
            await terminal.see(lambda: "C7061BAC" in terminal.text())
            assert "1 pending" in terminal.text()
            assert "602D9444" not in terminal.text()


async def test_without_a_bridge_it_ends_with_a_sentence(tmp_path, file):
    async with on_terminal("watch", "-c", str(file)) as terminal:
        assert await terminal.process.wait() == 1
        await terminal.see(lambda: "seb: No bridge is running here" in terminal.text())
    assert LEAVE not in terminal.raw


async def test_lines_are_printed_on_request(tmp_path, file):
    async with bridge(config(tmp_path)) as made:
        await announce(made.journal, FIRST)
        async with on_terminal("watch", "--lines", "-c", str(file), columns=200) as terminal:
            await terminal.see(lambda: f"Reboot     {FIRST}" in terminal.text())
    assert "\x1b[?1049h" not in terminal.raw
