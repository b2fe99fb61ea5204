"""`seb check --connect`: the program is there and may be run; it is not run."""

from bridge.plugins import Place
from sinks.command.environment import surroundings
from sinks.command.process import find_program
from sinks.command.settings import CommandSettings


async def check_sink(settings: CommandSettings, _place: Place) -> str:
    """One sentence of what was proved. Raises `Unavailable` as sending would."""
    found = find_program(settings, surroundings(settings))
    return f"{found} is there and may be run"
