"""`seb check --connect`: the program exists and may be run. The check does not run it."""

from bridge.plugins import Place
from sinks.command.environment import base_environment
from sinks.command.process import find_program
from sinks.command.settings import CommandSettings


async def check_sink(settings: CommandSettings, _place: Place) -> str:
    """Return one sentence that says what works. Raises `Unavailable` as sending would."""
    found = find_program(settings, base_environment(settings))
    return f"{found} exists and may be run"
