"""Every policy against votes in every order, with restarts and changes between them.

The table is written by hand. Beyond it, every short sequence is compared with a naive model.
"""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from support.vote_ledger import POLICIES, Said, VoteLedger
from support.world import NOON, NOTICE, SECOND, scheduled_event, started

from bridge.journal.schema import connect_memory
from bridge.journal.store import Store
from bridge.journal.votes import Receipt, receive, votes
from bridge.policy.judge import Rules, as_vote, judge, objection
from bridge.policy.require import Approvers, Count
from bridge.policy.votes import Approval, Given, older, unchanged

REQUIRE = ["any", "each-resource", Count(count=2), Approvers(approvers=("orders", "billing"))]
WHO = {"o": "orders", "b": "billing", "s": "stock"}
WHAT = {"": "approve", "-": "hold", "+": "release"}
EVENT = scheduled_event(resources=("vm-0", "vm-1"))
CHANGES = {
    "harsher": lambda event: replace(event, event_type="Redeploy"),
    "milder": lambda event: replace(event, event_type="Freeze"),
    "earlier": lambda event: replace(event, not_before=event.not_before - SECOND),
    "later": lambda event: replace(event, not_before=event.not_before + NOTICE),
    "more": lambda event: replace(event, resources=("vm-0", "vm-1", "vm-2")),
    "fewer": lambda event: replace(event, resources=("vm-0",)),
    "turned": lambda event: replace(event, resources=event.resources[::-1]),
    "started": started,
}

# A vote is a letter for who, and a digit for which VM, or none: o is orders, b billing, s stock.
# It approves, holds (-) or releases (+); with ? nobody verified that name. Ten minutes are 10m.
TABLE = """
                         any  each  two  both
nothing                  no   no    no   no
o0                       yes  no    no   no
o1                       yes  no    no   no
s0                       yes  no    no   no
o0 o0                    yes  no    no   no
o0 o1                    yes  yes   no   no
o0 b0                    yes  no    yes  yes
o0 b1                    yes  yes   yes  yes
o1 b0                    yes  yes   yes  yes
o0 s1                    yes  yes   yes  no
o0 s1 b1                 yes  yes   yes  yes
?o0                      yes  no    no   no
?o0 ?b1                  yes  yes   no   no
?o0 b1                   yes  yes   no   no
?o0 ?b1 o0 b1            yes  yes   yes  yes
o                        yes  no    no   no
o b                      yes  no    yes  yes
-o0                      no   no    no   no
-s0 o0 b1                no   no    no   no
o0 -s0 b1                no   no    no   no
o0 b1 -s1                no   no    no   no
o0 b1 -?s1               no   no    no   no
o0 b1 -s                 no   no    no   no
o0 b1 -s1 10m            yes  yes   yes  yes
-s1 10m o0 b1            yes  yes   yes  yes
-s1 10m -s1 o0 b1        no   no    no   no
o0 b1 -s1 +s1            yes  yes   yes  yes
o0 b1 -s1 +s0            no   no    no   no
o0 b1 -s1 +s             yes  yes   yes  yes
o0 b1 -s1 +o1            no   no    no   no
o0 b1 -s1 +o             no   no    no   no
o0 b1 -s1 +?s            no   no    no   no
o0 b1 -?s1 +s            yes  yes   yes  yes
o0 b1 -?s1 -s1 +?s       no   no    no   no
o0 b1 -s1 s1             yes  yes   yes  no
o0 b1 -b1                no   no    no   no
o0 b1 -b1 b1             yes  yes   yes  yes
o0 b1 -b1 10m            yes  no    no   no
o0 b1 +b1                yes  no    no   no
+o0 +b1                  no   no    no   no
o0 b1 harsher            no   no    no   no
o0 harsher b1            yes  no    no   no
harsher o0 b1            yes  yes   yes  yes
o0 b1 harsher o0 b1      yes  yes   yes  yes
o0 b1 -s1 harsher        no   no    no   no
-s1 harsher o0 b1        no   no    no   no
-s1 more o0 b1           no   no    no   no
-s1 earlier o0 b1        no   no    no   no
-s1 fewer o b            no   no    no   no
-s1 harsher o0 b1 10m    yes  yes   yes  yes
-s1 harsher +s1 o0 b1    yes  yes   yes  yes
-s1 +s harsher o0 b1     yes  yes   yes  yes
-b1 harsher o0 b1        yes  yes   yes  yes
-s1 s1 harsher o0 b1     yes  yes   yes  no
o0 b1 milder             yes  yes   yes  yes
o0 b1 -s1 milder         no   no    no   no
o0 b1 earlier            no   no    no   no
o0 b1 later              yes  yes   yes  yes
o0 b1 later earlier      yes  yes   yes  yes
later o0 b1 earlier      no   no    no   no
o0 b1 more               no   no    no   no
more o0 b1               yes  no    yes  yes
o0 b1 fewer              yes  yes   yes  yes
o0 fewer                 yes  yes   no   no
b1 fewer                 yes  no    no   no
fewer b1                 no   no    no   no
fewer o b                yes  yes   yes  yes
fewer o b more           no   no    no   no
o0 b1 turned             yes  yes   yes  yes
started o0 b1            no   no    no   no
"""
ROWS = [(line[:25].split(), line[25:].split()) for line in TABLE.strip("\n").splitlines()[1:]]


def said(word):
    """A word of the table as an approval."""
    what = WHAT[word[0] if word[0] in "-+" else ""]
    proof = "claimed" if "?" in word else "verified"
    letters = word.lstrip("-+?")
    vm = f"vm-{letters[1:]}" if letters[1:] else ""
    return Said(0, EVENT.event_id, WHO[letters[0]], what, vm, proof)


def given(said, now):
    approval = Approval(said.event, f"{now}", f"{now}", said.what, said.who, said.vm or None)
    return Given(approval, "bus", now, said.who if said.verified else None)


class Ballot:
    """The rules, with just enough around them to cast a vote."""

    def __init__(self, require, store=None):
        self.rules, self.store = Rules(require=require, vm_name="vm-0"), store
        self.event, self.now, self.standing = EVENT, NOON, {}

    def play(self, words):
        for word in words:
            self.now += SECOND
            if word in CHANGES:
                self.event = CHANGES[word](self.event)
            elif word == "10m":
                self.now += self.rules.hold_timeout
            elif word == "restart":
                self.restart()
            elif word != "nothing":
                self.hear(said(word))
        return judge(self.event, self.standing.values(), self.rules, self.now)

    def hear(self, said):
        told = given(said, self.now)
        vote = as_vote(told, self.event, 1, self.now)
        before = self.standing.get(vote.voter)
        if objection(told, vote, self.event, self.rules) is not None:
            return
        if before is not None and before.verified and not vote.verified:
            return
        if before is None or not unchanged(vote, before, self.event, self.rules.hold_timeout):
            self.standing[vote.voter] = vote

    def restart(self):
        """Keep only what was recorded."""
        self.store.connection.execute("DELETE FROM vote")
        receive(self.store, Receipt(list(self.standing.values())), 0.0)
        self.standing = {vote.voter: vote for vote in votes(self.store, self.event.key, 1)}


@pytest.fixture(scope="module")
def store():
    made = Store(connect_memory())
    yield made
    made.close()


@pytest.mark.parametrize(("words", "verdicts"), ROWS, ids=" ".join)
def test_the_table_is_true_wherever_a_restart_comes(words, verdicts, store):
    for require, verdict in zip(REQUIRE, verdicts, strict=True):
        for place in range(len(words) + 1):
            story = [*words[:place], "restart", *words[place:]]
            assert Ballot(require, store).play(story).satisfied is (verdict == "yes"), require


def test_the_table_has_every_change_and_every_verdict():
    words = {word for row, _ in ROWS for word in row}
    assert words >= {*CHANGES, "10m"}
    for verdicts in zip(*(verdicts for _, verdicts in ROWS), strict=True):
        assert set(verdicts) == {"yes", "no"}


# --- every short story ---------------------------------------------------------------------------

VOTES = ["o0", "b1", "o1", "?b0", "s0", "-b0", "+b0", "+b", "-?o1"]
SHORT = [story for length in range(4) for story in itertools.permutations(VOTES, length)]
SHORTER = [story for story in SHORT if len(story) < 3]


def by_hand(policy, words):
    """The verdict of the naive model."""
    model, event, now = VoteLedger("vm-0", policy, listed=False), EVENT, NOON
    model.sees({event.event_id: event}, now)
    for number, word in enumerate(words):
        now += SECOND
        if word in CHANGES:
            event = CHANGES[word](event)
            model.sees({event.event_id: event}, now)
        else:
            model.takes(replace(said(word), number=number), now)
    return model.enough(event.event_id, now, now)


@pytest.mark.parametrize(
    "change", [None, *[name for name in CHANGES if name != "started"]], ids=str
)
@pytest.mark.parametrize(("policy", "require"), list(zip(POLICIES, REQUIRE, strict=True)), ids=str)
def test_every_short_sequence_matches_the_naive_model(policy, require, change):
    for story in SHORT if change is None else SHORTER:
        places = range(len(story) + 1) if change else [0]
        for place in places:
            words = [*story[:place], *([change] if change else []), *story[place:]]
            found = Ballot(require).play(words)
            assert found.satisfied is by_hand(policy, words), words
            assert not found.satisfied or found.since <= NOON + SECOND * len(words), words


# --- the order of arrival ------------------------------------------------------------------------


@pytest.mark.parametrize("said", list(itertools.product(WHAT.values(), repeat=3)), ids=str)
def test_in_one_log_the_last_vote_counts_in_any_order_of_arrival(said):
    ballots = [
        replace(
            as_vote(given(Said(0, EVENT.event_id, "orders", what, "vm-0"), NOON), EVENT, 1, NOON),
            position=f"t/0/{offset}",
            log="bus@cluster/t/0",
            recorded=NOON + SECOND * offset,
        )
        for offset, what in enumerate(said)
    ]
    for arriving in itertools.permutations(ballots):
        standing = arriving[0]
        for vote in arriving[1:]:
            if not older(vote, standing):
                standing = vote
        assert standing is ballots[-1]


@pytest.mark.parametrize("require", REQUIRE, ids=str)
def test_the_moment_of_enough_votes_does_not_depend_on_when_it_is_checked(require):
    """A check changes nothing: between two votes, only holds change, when they expire."""
    for story in SHORT:
        ballot = Ballot(require)
        early = ballot.play(story)
        late = judge(ballot.event, ballot.standing.values(), ballot.rules, NOON + timedelta(days=1))
        assert late.satisfied >= early.satisfied, story
        if early.satisfied:
            assert late.since == early.since, story
