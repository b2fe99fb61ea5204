"""Compares a soak's ledger with the guarantees; pure, and shares no code with the bridge.

`judge` returns every breach in a sentence. An empty list means that all guarantees were kept.
"""

from collections.abc import Callable, Iterator

from soak.approval_rules import approvals_answered, posts_allowed
from soak.delivery_rules import (
    arrived,
    explained_duplicates,
    in_order,
    nothing_foreign,
    one_cause_one_id,
)
from soak.ledger import Ledger
from soak.recovery_rules import (
    calm_again,
    ended_in_order,
    everything_was_observed,
    faults_went_well,
    nothing_leaks,
)
from soak.rulings import Breach
from soak.truth_rules import everything_seen_is_told, true_ends, truthful

Rule = Callable[[Ledger], Iterator[Breach]]
RULES: dict[str, Rule] = {
    "every owed CloudEvent arrived at every sink": arrived,
    "nothing arrived that was never issued, or with other bytes": nothing_foreign,
    "one cause has one id, by the recipe": one_cause_one_id,
    "in order per scheduled event, sink and bridge": in_order,
    "every duplicate has a cause": explained_duplicates,
    "nothing is told that did not happen": truthful,
    "everything that a bridge certainly saw is told": everything_seen_is_told,
    "every end is the real one": true_ends,
    "every authorized approval is POSTed or reported as failed": approvals_answered,
    "every POST was allowed by policy at its last look": posts_allowed,
    "live, ready and drained within the bound": calm_again,
    "stopping is orderly": ended_in_order,
    "every fault could be ended": faults_went_well,
    "nothing leaks": nothing_leaks,
    "everything was observed": everything_was_observed,
}


def judge(ledger: Ledger) -> list[Breach]:
    return [breach for rule in RULES.values() for breach in rule(ledger)]


def verdicts(ledger: Ledger) -> dict[str, list[Breach]]:
    """The breaches of each guarantee, by its name."""
    return {name: list(rule(ledger)) for name, rule in RULES.items()}
