import io
import json
import logging
import re
import subprocess
import sys
import warnings

import pytest
from support.log_tools import log_as_before

from bridge.common import log
from bridge.common.fields import Secret


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored():
    with log_as_before():
        yield


@pytest.fixture
def bridge():
    return logging.getLogger("bridge.test")


@pytest.fixture
def text():
    stream = Terminal()
    log.setup("debug", stream=stream)
    return stream.getvalue


@pytest.fixture
def lines():
    stream = io.StringIO()
    log.setup("debug", stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_terminal_gets_text(bridge, text):
    bridge.info("sink.connected", extra={"sink": "orders-bus", "tries": 2, "last": None})
    bridge.warning("sink.slow")
    first, second = text().splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d INFO  sink\.connected sink=orders-bus tries=2 last=null", first
    )
    assert re.fullmatch(r"\d\d:\d\d:\d\d WARN  sink\.slow", second)


def test_everything_else_gets_json_lines(bridge, lines):
    bridge.info("sink.connected", extra={"sink": "orders-bus", "wait": 0.25, "ids": ["a", "b"]})
    [line] = lines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "event": "sink.connected",
        "sink": "orders-bus",
        "wait": 0.25,
        "ids": ["a", "b"],
    }


def test_what_nobody_caught_is_in_the_format_of_the_log(lines):
    try:
        raise RuntimeError("surprise")
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    [line] = lines()
    assert (line["level"], line["event"], line["error"]) == ("error", "bridge.crashed", "surprise")
    assert "RuntimeError: surprise" in line["traceback"]


def test_warnings_of_python_are_in_the_format_of_the_log(lines):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old thing", FutureWarning, stacklevel=1)
    [line] = lines()
    assert (line["level"], line["event"]) == ("warning", "py.warnings")
    assert "old thing" in line["message"]


@pytest.mark.parametrize(
    "evil", ["a\n12:00:00 INFO  forged", "a\x1b[2J", "a\x9b2J", "a\u202eb", "\r"]
)
def test_a_value_cannot_forge_a_line_or_move_the_cursor(bridge, text, evil):
    bridge.info("source.answered", extra={"body": evil})
    [line] = text().splitlines()
    assert line.isprintable()
    assert json.loads(line.partition("body=")[2]) == evil


def test_a_value_with_spaces_is_quoted(bridge, text):
    bridge.info("sink.failed", extra={"error": "no answer", "empty": "", "pair": "a=b", "é": "é"})
    assert text().rstrip().endswith('error="no answer" empty="" pair="a=b" é=é')


def test_long_values_are_cut(bridge, lines):
    many = list(range(1000))
    bridge.info("x.y", extra={"long": "a" * 5000, "many": many, "deep": {"a": {"b": {"c": 1}}}})
    [line] = lines()
    assert len(line["long"]) == log.LONGEST_VALUE + 1
    assert len(line["many"]) == log.MOST_ITEMS
    assert line["deep"] == {"a": {"b": "{'c': 1}"}}


def test_odd_values_are_still_json(bridge, lines):
    extra = {"nan": float("nan"), "lone": "\ud800", "type": int, "bytes": b"\xff"}
    bridge.info("x.y", extra=extra)
    assert lines()[0]["nan"] == "nan"


def test_a_field_cannot_replace_the_time_the_level_or_the_name(bridge, lines):
    bridge.info("x.y", extra={"level": "error", "event": "z", "time": 1})
    [line] = lines()
    assert (line["level"], line["event"]) == ("info", "x.y")
    assert line["time"] != 1


def test_secrets_are_not_shown(bridge, lines):
    bridge.info("x.y", extra={"token": Secret("hunter2"), "all": [Secret("hunter2")]})
    assert "hunter2" not in str(lines())


def test_libraries_log_warnings_and_above_in_the_same_format(lines):
    foreign = logging.getLogger("aiohttp.server")
    foreign.info("not heard")
    foreign.warning("bad request from %s\nforged", "somebody")
    [line] = lines()
    assert (line["event"], line["message"]) == (
        "aiohttp.server",
        "bad request from somebody\nforged",
    )


def test_a_library_message_with_a_bad_format_is_still_logged(lines):
    record = logging.makeLogRecord({"name": "foreign", "msg": "%d", "args": ("x",)})
    [ours] = [
        one for one in logging.getLogger().handlers if type(one).__module__ == "bridge.common.log"
    ]
    ours.handle(record)
    assert lines()[0]["message"] == "%d"


def test_an_exception_brings_its_traceback(bridge, lines):
    try:
        raise ValueError("broken\nforged")
    except ValueError:
        bridge.exception("x.failed")
    [line] = lines()
    assert line["traceback"].startswith("Traceback")
    assert "ValueError: broken" in line["traceback"]


def test_a_traceback_on_a_terminal_is_indented_so_it_cannot_forge_a_line(bridge, text):
    try:
        raise ValueError("broken\n12:00:00 INFO  forged\x1b")
    except ValueError:
        bridge.exception("x.failed")
    first, *rest = text().splitlines()
    assert first.endswith("ERROR x.failed")
    assert all(line.startswith("    ") and line.isprintable() for line in rest)


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        (None, ["info", "warning", "error"]),
        ("", ["info", "warning", "error"]),
        ("DEBUG", ["debug", "info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_the_level_decides_what_is_logged(bridge, level, heard):
    stream = io.StringIO()
    log.setup(level, stream=stream)
    for name in ("debug", "info", "warning", "error"):
        getattr(bridge, name)("x.y")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == heard


def test_with_level_error_libraries_do_not_warn():
    stream = io.StringIO()
    log.setup("error", stream=stream)
    logging.getLogger("aiohttp").warning("something")
    assert stream.getvalue() == ""


def test_an_unknown_level_is_an_error():
    with pytest.raises(
        ValueError, match="SEB_LOG: 'loud' is not a log level; choose from debug, info"
    ):
        log.setup("loud")


def test_setting_up_again_does_not_double_the_lines(bridge):
    stream = io.StringIO()
    log.setup(stream=io.StringIO())
    log.setup(stream=stream)
    bridge.info("x.y")
    assert len(stream.getvalue().splitlines()) == 1


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "os.close(2)", "sys.stderr = None"])
def test_a_closed_stderr_is_not_a_failure(closing):
    program = f"""
import logging, os, sys
from bridge.common import log
log.setup()
{closing}
logging.getLogger("bridge").info("x.y")
log.setup()
logging.getLogger("bridge").info("x.y")
print("alive")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "alive\n"
    assert "Traceback" not in done.stderr


def test_asyncio_repeats_itself_at_most_once_a_minute(lines):
    noisy = logging.getLogger("asyncio")
    for number in range(1000):
        noisy.error(f"socket.accept() out of system resource\nsocket: {number}")
    noisy.error("Task was destroyed but it is pending!")
    said = [line["message"].partition("\n")[0] for line in lines()]
    assert said == [
        "socket.accept() out of system resource",
        "Task was destroyed but it is pending!",
    ]


def test_a_library_with_many_messages_takes_no_more_memory(lines):
    noisy = logging.getLogger("asyncio")
    for number in range(1000):
        noisy.error(f"message {number}")
    [limit] = [one for one in noisy.filters if isinstance(one, log._Sparse)]
    assert len(limit._known) <= log.MOST_ITEMS


def test_what_is_said_seldom_says_how_often_it_was_asked():
    now = [0.0]
    seldom = log.Seldom(lambda: now[0])
    assert [seldom.now() for _ in range(3)] == [1, None, None]
    now[0] = 61.0
    assert [seldom.now(), seldom.now()] == [3, None]
