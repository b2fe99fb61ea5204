"""The faults by the names that the program gives them."""

from collections.abc import Awaitable, Callable

from soak import bridge_faults, floods, server_faults
from soak.program import Fault
from soak.stage import Stage

Play = Callable[[Stage, Fault], Awaitable[None]]
_NAMED: dict[str, Play] = {
    "kill": bridge_faults.kill,
    "terminate": bridge_faults.terminate,
    "kill-at-commit": bridge_faults.kill_at_commit,
    "freeze": bridge_faults.freeze,
    "reload": bridge_faults.reload,
    "bad-reload": bridge_faults.bad_reload,
    "clock-step": bridge_faults.clock_step,
    "full-disk": bridge_faults.full_disk,
    "read-only-disk": bridge_faults.read_only_disk,
    "slow-disk": bridge_faults.slow_disk,
    "torn-journal": bridge_faults.torn_journal,
    "slow-network": server_faults.slow_network,
    "half-message": server_faults.half_message,
    "silent-network": server_faults.silent_network,
    "cut-network": server_faults.cut_network,
    "dead-connections": server_faults.dead_connections,
    "reset-connections": server_faults.reset_connections,
    "node-kill": server_faults.node_kill,
    "node-freeze": server_faults.node_freeze,
    "topic-made-anew": server_faults.topic_made_anew,
    "server-kill": server_faults.server_kill,
    "server-stop": server_faults.server_stop,
    "server-freeze": server_faults.server_freeze,
    "answer": server_faults.answer,
    "answer-reset": server_faults.answer_reset,
    "no-answer": server_faults.no_answer,
    "certificate-rotation": server_faults.certificate_rotation,
    "later": server_faults.later,
    "votes": floods.votes,
    "garbage": floods.garbage,
    "connections": floods.connections,
}


def play(kind: str) -> Play:
    """The function that begins a fault of this kind, waits, and ends it."""
    return server_faults.metadata if kind.startswith("metadata-") else _NAMED[kind]
