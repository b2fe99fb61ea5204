"""Rules that vote automatically: when they apply, and for which VMs."""

from dataclasses import replace

import pytest
from pydantic import ValidationError
from support.ballots import cast
from support.world import ME, NOON, OTHER, scheduled_event

from bridge.policy.auto import Auto, applies, chosen
from bridge.policy.judge import Rules, judge
from bridge.policy.votes import AUTO

EVENT = replace(scheduled_event(), event_type="Freeze", event_source="Platform", duration=5.0)


def rule(**keys):
    return Auto.model_validate(keys)


@pytest.mark.parametrize(
    ("keys", "event", "applying"),
    [
        ({"event_source": "platform"}, {}, True),
        ({"event_source": "User"}, {}, False),
        ({"event_source": "User"}, {"event_source": None}, False),
        ({"event_type": "freeze"}, {}, True),
        ({"event_type": "re*"}, {}, False),
        ({"event_type": "re*"}, {"event_type": "Reboot"}, True),
        ({"max_duration": "5s"}, {}, True),
        ({"max_duration": "4s"}, {}, False),
        ({"max_duration": 0}, {"duration": 0}, True),
        ({"max_duration": "1h"}, {"duration": -1}, False),
        ({"max_duration": "1h"}, {"duration": None}, False),
        ({"event_type": "Freeze"}, {"duration": -1}, True),
        ({"resources": ["front*"]}, {}, True),
        ({"resources": ["back*"]}, {}, False),
        ({"resources": ["front*"], "all_resources": True}, {}, False),
        ({"resources": ["*"], "all_resources": True}, {}, True),
        ({"event_type": "Freeze", "max_duration": "1s"}, {}, False),
        ({"event_type": "Freeze"}, {"resources": (OTHER,)}, False),
    ],
    ids=str,
)
def test_a_rule_applies_when_all_its_conditions_do(keys, event, applying):
    assert applies(rule(**keys), replace(EVENT, **event), ME) is applying


def test_the_vote_is_for_this_vm_unless_a_rule_is_for_all():
    mine, whole = rule(event_type="Freeze"), rule(max_duration="5s", all_resources=True)
    assert chosen([mine], EVENT, ME) == ME
    assert chosen([mine, whole], EVENT, ME) == ""
    assert chosen([mine, whole], EVENT, None) is None
    assert chosen([], EVENT, ME) is None


def by_rule(resource=ME):
    seen = replace(cast().about, event_type="Freeze")
    return cast(approver=AUTO, via=AUTO, resource=resource, verified=True, about=seen)


def test_a_vote_by_rule_counts_only_while_its_rule_applies():
    rules = Rules(require="any", auto=(rule(max_duration="5s"),), vm_name=ME)
    assert judge(EVENT, [by_rule()], rules, NOON).satisfied
    assert not judge(replace(EVENT, duration=6.0), [by_rule()], rules, NOON).satisfied
    assert not judge(EVENT, [by_rule()], replace(rules, auto=()), NOON).satisfied
    assert not judge(EVENT, [by_rule("")], rules, NOON).satisfied


def test_a_vote_by_rule_for_all_counts_for_each_vm():
    rules = Rules(auto=(rule(max_duration="5s", all_resources=True),), vm_name=ME)
    assert judge(EVENT, [by_rule("")], rules, NOON).satisfied


def test_a_vote_by_rule_never_overrides_a_hold():
    rules = Rules(require="any", auto=(rule(event_type="*"),), vm_name=ME)
    hold = cast(decision="hold", about=by_rule().about)
    assert not judge(EVENT, [by_rule(), hold], rules, NOON).satisfied


@pytest.mark.parametrize("keys", [{}, {"all_resources": True}, {"event_type": None}])
def test_a_rule_without_a_condition_is_refused(keys):
    with pytest.raises(ValidationError, match="at least one of"):
        rule(**keys)


def test_each_rule_is_a_sentence():
    assert str(rule(event_type="Freeze", max_duration="10s")) == (
        "scheduled events of type Freeze that take at most 10s (for this VM)"
    )
    assert str(rule(event_source="User", resources=["a*", "b"], all_resources=True)) == (
        "scheduled events whose source is User, on VMs like a* or b (for all VMs of the event)"
    )
