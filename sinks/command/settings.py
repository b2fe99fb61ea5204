"""The keys of the sink `command`: what to run, where, with what, and for how long."""

import os
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from bridge.plugins import Duration, Secret, SinkSettings, write_duration

GRACE = 2.0
"""Seconds that a command which takes too long gets to end by itself."""
_SLACK = 15.0
_OURS = "EVENT_"


def _whole(text: str) -> str:
    if "\0" in text:
        raise ValueError("an argument must not contain a NUL character")
    return text


def _foreign(name: str) -> str:
    if name.upper().startswith(_OURS):
        raise ValueError(f"{name} is reserved: names that begin with {_OURS} describe the event")
    return name


Argument = Annotated[str, StringConstraints(max_length=4096), AfterValidator(_whole)]
Name = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128),
    AfterValidator(_foreign),
]


class CommandSettings(SinkSettings):
    """What to run for each CloudEvent, and what success means."""

    type: Literal["command"]
    argv: list[Argument] = Field(
        min_length=1,
        max_length=256,
        description="the program (an absolute path, or a name on PATH) and its arguments; no shell",
    )
    env: dict[Name, Secret] = Field({}, description="more variables, each text or {file: PATH}")
    cwd: str = Field("/", description="the working directory, an absolute path")
    timeout: Duration = Field(300.0, gt=0, description="how long a run may take")
    concurrency: int = Field(1, ge=1, le=64, description="how many may run at the same time")
    then: Literal["approve"] | None = Field(
        None, description="approve: exit code 0 casts this VM's vote"
    )

    @field_validator("argv")
    @classmethod
    def _program(cls, argv: list[str]) -> list[str]:
        program = argv[0]
        if not program or (os.path.dirname(program) and not os.path.isabs(program)):  # noqa: PTH117, PTH120  a bare name is not a path
            raise ValueError("the program must be an absolute path, or a name on PATH")
        return argv

    @field_validator("cwd")
    @classmethod
    def _absolute(cls, cwd: str) -> str:
        if not os.path.isabs(cwd) or "\0" in cwd:  # noqa: PTH117  the text is kept as it is
            raise ValueError("the directory must be an absolute path")
        return cwd

    @property
    def largest_batch(self) -> int:
        """A batch is no larger than what may run at the same time, so no run waits for another."""
        return self.concurrency

    @property
    def longest_send(self) -> float:
        """The sink keeps its own time: a drain must not be cut short at a third of the notice."""
        return self.timeout + GRACE + _SLACK

    def describe(self) -> str:
        many = "one" if self.concurrency == 1 else f"up to {self.concurrency}"
        vote = ", and casts this VM's vote when that succeeds" if self.then else ""
        return (
            f"runs {self.argv[0]} for each CloudEvent ({self.words} on stdin), {many} at a time, "
            f"each for {write_duration(self.timeout)} at most{vote}"
        )
