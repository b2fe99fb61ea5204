"""What a broker is asked by the check, and how its answer is read."""

import pytest

from sinks.kafka.check import AskTopics, may_write


@pytest.mark.parametrize(
    ("operations", "meant"),
    [([], None), ([-(2**31)], None), ([0], False), ([1 << 8], False), ([0b1_0001_1000], True)],
)
def test_what_a_broker_says_of_access_is_understood(operations, meant):
    assert may_write(operations) is meant


def test_an_old_broker_is_asked_what_it_can_answer():
    asked = AskTopics(["news"])
    assert asked.prepare({3: (0, 13)}).API_VERSION == 8
    assert asked.prepare({3: (0, 7)}).API_VERSION == 5
