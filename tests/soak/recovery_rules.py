"""The guarantees about the bridges themselves: they recover, stop in order, and leak nothing."""

from collections.abc import Iterator

from soak.ledger import Ledger, Played, Sample
from soak.rulings import Breach
from soak.settings import LANES

FIRST_MINUTE = 60.0
MORE_FILES, MORE_THREADS, MORE_MEMORY = 40, 16, 96 * 1024
"""What a process may use more than after its first minute; memory is in KiB."""


def calm_again(ledger: Ledger) -> Iterator[Breach]:
    for final in ledger.finals:
        if final.calm_after is None:
            yield Breach(f"{final.bridge} after {ledger.bound:.0f} s: {final.why}", ledger.ended)
        if final.waiting:
            yield Breach(f"{final.bridge} left {final.waiting} CloudEvents undelivered")
        if final.dead_letters:
            yield Breach(f"{final.bridge} has {final.dead_letters} dead letters")


def ended_in_order(ledger: Ledger) -> Iterator[Breach]:
    for final in ledger.finals:
        if final.exit_code != 0:
            yield Breach(f"{final.bridge} ended with {final.exit_code} after SIGTERM", ledger.ended)


def faults_went_well(ledger: Ledger) -> Iterator[Breach]:
    for fault in ledger.faults:
        if fault.note.startswith("broke"):
            yield Breach(f"{fault.kind} of {fault.target} {fault.note}", fault.begun)


def everything_was_observed(ledger: Ledger) -> Iterator[Breach]:
    """Otherwise the other rules had nothing to check."""
    posts = [each for each in ledger.truth if each["what"] == "approval" and each["via"] == "POST"]
    if len(posts) > len(ledger.posts):
        yield Breach(f"{len(posts)} POSTs came, and {len(ledger.posts)} were observed")
    looked = {look.bridge for look in ledger.looks if look.clean}
    for final in ledger.finals:
        if final.bridge not in looked:
            yield Breach(f"no clean look of {final.bridge} was observed")


def nothing_leaks(ledger: Ledger) -> Iterator[Breach]:
    for bridge, (first, last) in usage(ledger).items():
        grown = {
            "open files": last.files - first.files - MORE_FILES,
            "threads": last.threads - first.threads - MORE_THREADS,
            "KiB of memory": last.memory - first.memory - MORE_MEMORY,
        }
        for what, excess in grown.items():
            if excess > 0:
                yield Breach(f"{bridge} uses {what} that it did not in its first minute: {excess}")


def usage(ledger: Ledger) -> dict[str, tuple[Sample, Sample]]:
    """What each bridge used after its first minute (or the first half of a short soak), and last."""
    found = {}
    early = min(FIRST_MINUTE, ledger.seconds / 2)
    for bridge in dict.fromkeys(sample.bridge for sample in ledger.samples):
        own = [sample for sample in ledger.samples if sample.bridge == bridge]
        first = [sample for sample in own if sample.at <= early] or own
        found[bridge] = (first[-1], own[-1])
    return found


def recoveries(ledger: Ledger) -> dict[str, float]:
    """For each kind of fault, the longest time from its end until a bridge was ready again.

    A time during which a bridge is not ready counts for one fault: the last to end among those that
    concern the bridge or the parts that kept it from being ready.
    """
    longest = {fault.kind: 0.0 for fault in ledger.faults if not fault.note}
    for bridge in dict.fromkeys(sample.bridge for sample in ledger.samples):
        for spell, ended in _unready(ledger, bridge):
            cause = _last(ledger, bridge, spell, ended)
            if cause is not None:
                longest[cause.kind] = max(longest.get(cause.kind, 0.0), ended - cause.ended)
    return longest


def _unready(ledger: Ledger, bridge: str) -> Iterator[tuple[list[Sample], float]]:
    """The samples of each time during which the bridge was not ready, and when it was again."""
    spell: list[Sample] = []
    for sample in ledger.samples:
        if sample.bridge != bridge:
            continue
        if not sample.ready:
            spell.append(sample)
        elif spell:
            yield spell, sample.at
            spell = []


def _last(ledger: Ledger, bridge: str, spell: list[Sample], ended: float) -> Played | None:
    lanes = {bridge} | {_lane(why) for sample in spell for why in sample.why}
    fitting = [
        fault
        for fault in ledger.faults
        if fault.target in lanes and spell[0].at - _BEFORE <= fault.ended <= ended
    ]
    return max(fitting, key=lambda fault: fault.ended, default=None)


_BEFORE = 10.0
"""How long before a bridge is not ready the fault that caused it may have ended."""


def _lane(why: str) -> str:
    return LANES.get(why.removeprefix("sink "), "metadata")
