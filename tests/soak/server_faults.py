"""Faults of networks, brokers, receivers and the metadata service: one function each."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable

from soak.network import Place
from soak.program import Fault
from soak.settings import VOTES
from soak.skipped import Skipped
from soak.stage import Stage, make_votes_topic
from support.kafka_processes import Processes

# --- of the network ------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _lasting(fault: Fault, end: Callable[[], object]) -> AsyncGenerator[None]:
    yield
    await asyncio.sleep(fault.lasting)
    end()


def _place(stage: Stage, fault: Fault) -> Place:
    return stage.places[fault.target]


async def slow_network(stage: Stage, fault: Fault) -> None:
    place = _place(stage, fault)
    async with _lasting(fault, place.set):
        place.set(lag=fault.how["seconds"])


async def half_message(stage: Stage, fault: Fault) -> None:
    place = _place(stage, fault)
    async with _lasting(fault, place.set):
        place.set(halves=True)


async def silent_network(stage: Stage, fault: Fault) -> None:
    """Half open: nothing passes, and nothing is closed."""
    place = stage.syslog if fault.target == "syslog" else _place(stage, fault)
    async with _lasting(fault, place.release):
        place.stall()


async def cut_network(stage: Stage, fault: Fault) -> None:
    place = stage.syslog if fault.target == "syslog" else _place(stage, fault)
    await place.down()
    await asyncio.sleep(fault.lasting)
    await place.up()


async def dead_connections(stage: Stage, fault: Fault) -> None:
    """The present connections stay open and never pass anything again."""
    _place(stage, fault).drop()


async def reset_connections(stage: Stage, fault: Fault) -> None:
    if fault.target == "syslog":
        await stage.syslog.hang_up(reset=True)
    else:
        await _place(stage, fault).reset()


# --- of the brokers and receivers ----------------------------------------------------------------


async def node_kill(stage: Stage, fault: Fault) -> None:
    await stage.kafka.kill(fault.how["node"])
    await asyncio.sleep(fault.lasting)
    await stage.kafka.restart(fault.how["node"])


async def node_freeze(stage: Stage, fault: Fault) -> None:
    nodes = stage.kafka.nodes
    if not isinstance(nodes, Processes):
        raise Skipped("the in-memory stand-in for Kafka cannot be frozen")
    process = nodes.nodes[fault.how["node"]].process
    assert process is not None
    os.killpg(process.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(fault.lasting)
    finally:
        os.killpg(process.pid, signal.SIGCONT)


async def topic_made_anew(stage: Stage, _: Fault) -> None:
    """What nobody had read is lost with the topic, so the voters repeat it."""
    if not isinstance(stage.kafka.nodes, Processes):
        raise Skipped("the in-memory stand-in for Kafka cannot delete a topic")
    await stage.kafka.delete_topic(VOTES)
    for _attempt in range(20):
        await asyncio.sleep(0.5)
        with contextlib.suppress(Exception):
            await make_votes_topic(stage.kafka, stage.ledger.nodes)
            break
    stage.votes_lost("kafka")


async def server_kill(stage: Stage, fault: Fault) -> None:
    """Nothing that the server has confirmed is lost: it is saved first, and cut off meanwhile."""
    async with stage.mqtt_gate:
        await stage.places["mqtt"].down()
        await asyncio.to_thread(stage.mosquitto.save)
        await asyncio.to_thread(stage.mosquitto.kill)
        await asyncio.sleep(fault.lasting)
        await asyncio.to_thread(stage.mosquitto.start)
        await stage.places["mqtt"].up()


async def server_stop(stage: Stage, fault: Fault) -> None:
    async with stage.mqtt_gate:
        await asyncio.to_thread(stage.mosquitto.stop)
        await asyncio.sleep(fault.lasting)
        await asyncio.to_thread(stage.mosquitto.start)


async def server_freeze(stage: Stage, fault: Fault) -> None:
    stage.mosquitto.signal(signal.SIGSTOP)
    await asyncio.sleep(fault.lasting)
    stage.mosquitto.signal(signal.SIGCONT)


async def answer(stage: Stage, fault: Fault) -> None:
    async with _lasting(fault, stage.hook.recover):
        stage.hook.answer(**fault.how)


async def answer_reset(stage: Stage, fault: Fault) -> None:
    async with _lasting(fault, stage.hook.recover):
        stage.hook.reset()


async def no_answer(stage: Stage, fault: Fault) -> None:
    released = stage.hook.silence()
    async with _lasting(fault, stage.hook.recover):
        pass
    released.set()


async def certificate_rotation(stage: Stage, _: Fault) -> None:
    stage.authority.rotate()
    await stage.hook.rotate(stage.authority.context)


async def later(stage: Stage, fault: Fault) -> None:
    """The command asks to be run again later."""
    flags = [bridge.folder / "drain.jsonl.later" for bridge in stage.bridges.values()]
    for flag in flags:
        flag.touch()
    await asyncio.sleep(fault.lasting)
    for flag in flags:
        flag.unlink(missing_ok=True)


async def metadata(stage: Stage, fault: Fault) -> None:
    kind = fault.kind.removeprefix("metadata-")
    live = stage.world.fault(kind, **fault.how)
    await asyncio.sleep(fault.lasting)
    stage.world.clear_faults(live.name)
