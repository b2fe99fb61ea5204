"""One small error for each promise of the bridge, and the check that must find it.

An error is a replacement of text. If the text is not there exactly once, the check fails: the code
has changed, and the error must be written anew.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class Outdated(Exception):
    """The text that a mutation replaces is not in the file exactly once."""


@dataclass(frozen=True)
class Mutation:
    """`breaks` is the promise. `caught_by` is a world of the model, or a test with its path."""

    breaks: str
    path: str
    replaces: str
    by: str
    caught_by: str

    def apply(self, root: Path) -> None:
        """Write the error into the copy of the sources at *root*."""
        file = root / self.path
        text = file.read_text(encoding="utf-8")
        if text.count(self.replaces) != 1:
            raise Outdated(f"{self.path} has this text {text.count(self.replaces)} times, not once")
        file.write_text(text.replace(self.replaces, self.by), encoding="utf-8")


def command(check: str) -> Sequence[str]:
    """How to run a check: a world of the model, or a test."""
    if "/" in check:
        return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", check]
    return [sys.executable, "-m", "model", check]


MUTATIONS = (
    Mutation(
        "a document and its CloudEvents are one commit",
        "bridge/source/poller.py",
        "                await self.journal.commit(state, traced, now, generation=self._generation, **meta)\n",
        "                await self.journal.commit(state, [], now, generation=self._generation, **meta)\n"
        "                await self.journal.append(traced, now)\n",
        "tests/faults/test_fault_points.py::test_a_kill_at_any_commit_loses_nothing",
    ),
    Mutation(
        "a sink gets a CloudEvent before it is settled",
        "bridge/delivery/dispatcher.py",
        "                results = await self._send(send, rows)\n",
        "                done = [verdict(row, None, time.time(), 1e9) for row in rows]\n"
        "                await self.outgoing.settle(rows, done)\n"
        "                await asyncio.sleep(0.05)\n"
        "                results = await self._send(send, rows)\n",
        "tests/faults/test_fault_points.py::test_a_kill_at_any_commit_loses_nothing",
    ),
    Mutation(
        "a message is acknowledged after it is in the journal",
        "bridge/approvals/listeners.py",
        "            taken = await self.intake.take_some(arrived, self.name, must_sign=must_sign)\n",
        "            for delivery in arrived:\n"
        "                if delivery.ack is not None:\n"
        "                    await delivery.ack()\n"
        "            taken = await self.intake.take_some(arrived, self.name, must_sign=must_sign)\n",
        "tests/bridge/approvals/test_listeners.py::"
        "test_a_message_is_acknowledged_only_after_it_is_in_the_journal",
    ),
    Mutation(
        "a position is stored with its vote",
        "bridge/approvals/intake.py",
        "        state, taken, done, full = open_to_votes(store), 0, 0, 0.0\n",
        "        state, taken, done, full = open_to_votes(store), 0, 0, 0.0\n"
        "        for one in deliveries:\n"
        "            if one.checkpoint is not None:\n"
        "                self._write(store, Receipt(checkpoint=(via, *one.checkpoint)))\n",
        "tests/faults/test_approval_kills.py::"
        "test_a_kill_around_the_recording_of_a_vote_does_not_lose_it",
    ),
    Mutation(
        "CloudEvents of one event go out in order",
        "bridge/journal/store.py",
        'sql = f"SELECT seq, key FROM head WHERE sink = :sink AND seq > :after {one} ORDER BY seq"\n',
        'sql = f"""SELECT o.seq, o.key FROM outbox o LEFT JOIN delivery d ON d.sink = :sink\n'
        "            AND d.seq = o.seq WHERE d.how IS NULL AND o.seq > :after {one}\n"
        '            ORDER BY o.seq DESC"""\n',
        "tests/bridge/delivery/test_dispatcher.py::"
        "test_what_was_recorded_before_and_after_the_start_arrives_in_order",
    ),
    Mutation(
        "an error is not an empty document",
        "bridge/source/poller.py",
        "        answer = await metadata.fetch()\n",
        "        answer = await metadata.fetch()\n"
        "        if isinstance(answer, SourceProblem):\n"
        "            answer = Answer(Document(self._state.incarnation))\n",
        "tests/faults/test_flaky_source.py::test_no_bad_answer_is_taken_for_the_end_of_an_event",
    ),
    Mutation(
        "the last look judges once more",
        "bridge/approvals/start_requests.py",
        "        if turn is None or now < turn:\n            return None\n        return Asked(",
        "        return Asked(",
        "reloads",
    ),
    Mutation(
        "an approval is about the state that its sender saw",
        "bridge/policy/seen.py",
        "    vote = replace(vote, about=about)\n"
        "    return _WORSE if lapsed(vote, here.known.event) else vote\n",
        "    return vote if about else _WORSE\n",
        "worse",
    ),
    Mutation(
        "a signature must match",
        "bridge/approvals/verification.py",
        "                why = str(error)\n                continue\n",
        "                why = str(error)\n                return Proof(rule.approver)\n",
        "signed",
    ),
    Mutation(
        "a message that comes again is recognized",
        "bridge/journal/votes.py",
        "    return store.connection.execute(sql, (hashed(key)[0], event_key)).fetchone() is not None\n",
        "    return store.connection.execute(sql, (hashed(key)[0], event_key)).fetchone() == ()\n",
        "signed",
    ),
    Mutation(
        "the second bridge waits for its turn",
        "bridge/approvals/start_requests.py",
        "        return judgment.since + mine * self.runtime.rules.takeover_after if mine else _AT_ONCE\n",
        "        return judgment.since if mine else _AT_ONCE\n",
        "takeover",
    ),
    Mutation(
        "a bridge wakes when its turn comes",
        "bridge/approvals/decisions.py",
        "            self._again_at(turn)\n            return False\n",
        "            return False\n",
        "takeover",
    ),
    Mutation(
        "a StartRequest that comes too late is published as failed",
        "bridge/approvals/decisions.py",
        "                await self.start_requests.missed(one.event, one.cast, one.known)\n",
        "                pass\n",
        "outages",
    ),
    Mutation(
        "a duty is withdrawn only by the votes that were judged",
        "bridge/approvals/decisions.py",
        "[event for event in judged if present[event] == judged[event]]",
        "[event for event in judged if present]",
        "tests/bridge/approvals/test_decisions.py::"
        "test_a_vote_that_comes_while_a_duty_is_withdrawn_makes_it_due_again",
    ),
    Mutation(
        "a vote that lapses leaves the duty of other votes",
        "bridge/approvals/decisions.py",
        "still_due=enough)",
        "still_due=False)",
        "worse",
    ),
)
