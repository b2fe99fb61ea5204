"""The refused votes that a bridge does not publish."""

from support.cloudevents import make

from bridge.runtime.refusals import MOST, UnpublishedRefusals


def test_the_newest_come_first_and_a_reader_gets_each_stray_once():
    refusals = UnpublishedRefusals()
    made = [make(number) for number in range(4)]
    refusals.add(made[0], stray=True)
    seen = refusals.total
    refusals.add(made[1], stray=True)
    refusals.add(made[2], stray=False)
    refusals.add(made[3], stray=True)
    assert [one.cloudevent for one in refusals.latest()] == made[::-1]
    assert refusals.strays_after(seen) == [made[1], made[3]]
    assert refusals.strays_after(refusals.total) == []


def test_a_flood_leaves_a_limited_number():
    refusals = UnpublishedRefusals()
    for number in range(3 * MOST):
        refusals.add(make(number), stray=True)
    assert refusals.total == 3 * MOST
    assert len(refusals.latest()) == len(refusals.strays_after(0)) == MOST
    assert refusals.latest()[0].cloudevent.id == make(3 * MOST - 1).id
