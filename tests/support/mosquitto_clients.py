"""mosquitto_pub and mosquitto_sub, MQTT clients that share no code with the bridge."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from support.debian import ToolFailed, run_tool, tool

Json = dict[str, Any]
PATIENCE = 30.0


class Address(Protocol):
    """What both a broker and a proxy before it have."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


async def mosquitto_pub(
    broker: Address,
    topic: str,
    payload: bytes | Json,
    *options: str,
    properties: Iterable[tuple[str, ...]] = (),
    version: str = "5",
    qos: int = 1,
) -> None:
    """Publish one message; *properties* as `("user-property", "name", "value")`.

    An option such as `-r` retains it, and `-l` makes a message of each line. An empty payload is a
    message too.
    """
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    said = [part for each in properties for part in ("-D", "publish", *each)]
    with_body = [] if "-l" in options else ["-s"] if body else ["-n"]
    where = ["-h", broker.host, "-p", str(broker.port), "-V", version, "-q", str(qos), "-t", topic]
    arguments = (*where, *with_body, *said, *options)
    await run_tool("mosquitto_pub", *arguments, package="mosquitto-clients", stdin=body)


@dataclass
class Subscriber:
    """What mosquitto_sub has printed so far: each message as `%j` has it, the payload as text."""

    messages: list[Json] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def payloads(self) -> list[str]:
        return [each["payload"] or "" for each in self.messages]

    def subscriptions(self) -> int:
        """How often it connected: once more after each reconnect."""
        return sum(line.startswith("Subscribed") for line in self.other)

    async def until(self, condition: Callable[[list[Json]], object], what: str) -> list[Json]:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition(self.messages):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}: {self.messages[-20:]}") from None
        return list(self.messages)

    async def read(self, stream: asyncio.StreamReader) -> None:
        while line := (await stream.readline()).decode("utf-8", "replace").rstrip("\n"):
            if line.startswith("{"):
                self.messages.append(json.loads(line))
            else:
                self.other.append(line)


@contextlib.asynccontextmanager
async def mosquitto_sub(
    broker: Address, topic: str, *options: str, version: str = "5", qos: int = 1
) -> AsyncGenerator[Subscriber]:
    """Subscribed when entered; collects until left. Options such as `-c -i ID` keep a session."""
    program = await asyncio.to_thread(tool, "mosquitto_sub", "mosquitto-clients")
    process = await asyncio.create_subprocess_exec(
        # Its debug lines tell when it is subscribed, but not before its buffer is full.
        "stdbuf", "-oL", program, "-h", broker.host, "-p", str(broker.port), "-V", version,
        "-q", str(qos), "-t", topic, "-d", "-F", "%j", *options,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 20,
    )  # fmt: skip
    found = Subscriber()
    assert process.stdout is not None
    reading = asyncio.create_task(found.read(process.stdout))
    try:
        async with asyncio.timeout(PATIENCE):
            while not found.subscriptions():
                if process.returncode is not None:
                    raise ToolFailed("\n".join(found.other))
                await asyncio.sleep(0.01)
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await reading
