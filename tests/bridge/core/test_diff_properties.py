"""What must be true for any history of documents, with restarts at any point."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat

from hypothesis import given
from hypothesis import strategies as st
from support.world import ME, NOON, NOTICE, OBSERVER, OTHER, World, scheduled_event, started

from bridge.core.messages import transition
from bridge.core.model import Document, ScheduledEvent
from bridge.core.state import Transition

NAMES = ("A", "B", "C")
ENDS = {"completed", "canceled"}
states = st.builds(
    lambda event_id, changes, begun: (
        started(scheduled_event(event_id, **changes))
        if begun
        else scheduled_event(event_id, **changes)
    ),
    st.sampled_from([*NAMES, "a"]),
    st.fixed_dictionaries(
        {
            "not_before": st.sampled_from([NOON + NOTICE, NOON + 3 * NOTICE, None]),
            "resources": st.sampled_from([(ME,), (ME, OTHER), (OTHER, ME), (OTHER,)]),
            "event_type": st.sampled_from(["Freeze", "Reboot"]),
            "description": st.sampled_from(["", "why", None]),
            "duration": st.sampled_from([-1, 9, 9.0]),
        }
    ),
    st.booleans(),
)
documents = st.lists(states, max_size=4, unique_by=lambda event: event.key)
steps = st.tuples(
    documents,
    st.sampled_from([1, 60, 400, 90000]).map(lambda seconds: timedelta(seconds=seconds)),
    st.sampled_from([None, 0]),
)
histories = st.lists(steps, min_size=1, max_size=12)
interruptions = st.lists(st.sampled_from(["", "", "restart", "boot"]), min_size=12, max_size=12)
scopes = st.sampled_from(["own", "all"])
History = list[tuple[list[ScheduledEvent], timedelta, int | None]]


def play(history: History, breaks: Iterable[str] = (), **facts: object) -> World:
    world = World(**facts)
    for (events, after, incarnation), interrupted in zip(
        history, chain(breaks, repeat("")), strict=False
    ):
        if interrupted == "restart":
            world.restart()
        elif interrupted == "boot":
            world.boot()
        said = {} if incarnation is None else {"incarnation": incarnation}
        world.see(*events, after=after, **said)
    return world


def message_id(happened: Transition) -> str:
    return transition(happened, OBSERVER, NOON, 1).id


def ids(world: World) -> dict[str, list[str]]:
    found = defaultdict(list)
    for happened in world.history:
        found[happened.event.key].append(message_id(happened))
    return found


@given(histories, scopes)
def test_a_document_against_itself_gives_nothing(history: History, scope: str):
    world = play(history, scope=scope)

    assert world.see(*history[-1][0]) == []


@given(histories, interruptions, scopes)
def test_restarts_change_no_id_and_no_order(history: History, breaks: list[str], scope: str):
    boots = [each if each == "boot" else "" for each in breaks]

    assert ids(play(history, breaks, scope=scope)) == ids(play(history, boots, scope=scope))


@given(histories, interruptions, scopes)
def test_a_life_has_at_most_one_beginning_one_start_and_one_end_in_order(history, breaks, scope):
    lives: dict[tuple[str, int], list[str]] = defaultdict(list)
    for happened in play(history, breaks, scope=scope).history:
        lives[happened.event.key, happened.life].append(happened.what)

    for life in lives.values():
        count = Counter(life)
        assert life[0] in {"scheduled", "started"}
        assert max(count["scheduled"], count["started"]) == 1
        assert sum(count[end] for end in ENDS) <= 1
        assert not ENDS.intersection(life[:-1])
        if "started" in life:
            assert set(life[life.index("started") + 1 :]) <= {"completed"}


@given(histories, scopes)
def test_lives_are_numbered_one_by_one(history: History, scope: str):
    lives: dict[str, list[int]] = defaultdict(list)
    for happened in play(history, scope=scope).history:
        if happened.life not in lives[happened.event.key]:
            lives[happened.event.key].append(happened.life)

    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in lives.values())


@given(histories)
def test_two_vms_that_see_the_same_history_give_the_same_ids(history: History):
    mine = play(history, scope="all", vm_name=ME)
    theirs = play(history, scope="all", vm_name=OTHER, boot_id="another machine")
    nameless = play(history, scope="all", vm_name=None)

    assert ids(mine) == ids(theirs) == ids(nameless)


@given(histories)
def test_two_vms_of_one_event_give_the_same_ids_under_scope_own(history: History):
    both = [
        ([replace(each, resources=(ME, OTHER)) for each in events], after, incarnation)
        for events, after, incarnation in history
    ]

    assert ids(play(both, vm_name=ME)) == ids(play(both, vm_name=OTHER))


@given(histories, interruptions, scopes)
def test_no_two_transitions_share_an_id(history: History, breaks: list[str], scope: str):
    said = [message_id(happened) for happened in play(history, breaks, scope=scope).history]

    assert len(set(said)) == len(said)


@given(histories, st.randoms(use_true_random=False))
def test_the_order_of_events_and_resources_changes_no_id(history: History, random):
    def shuffled(events: list[ScheduledEvent]) -> list[ScheduledEvent]:
        turned = [
            replace(each, resources=tuple(random.sample(each.resources, len(each.resources))))
            for each in events
        ]
        return random.sample(turned, len(turned))

    other = [(shuffled(events), after, incarnation) for events, after, incarnation in history]

    assert ids(play(other, scope="all")) == ids(play(history, scope="all"))


@given(histories, scopes)
def test_tracked_events_were_seen_last_or_are_still_settling(history: History, scope: str):
    world = play(history, scope=scope)
    last = {event.key for event in Document(1, tuple(history[-1][0])).events}

    assert last <= set(world.state.tracked)
    for key in set(world.state.tracked) - last:
        assert world.state.tracked[key].missing_since is not None
        assert world.state.settle_until is not None
