from support.simulator_tools import make_world


def test_a_fault_ends_by_count_by_time_and_by_hand():
    world, clock = make_world()
    world.fault("empty", count=2)
    hits = [len(world.faults.hit("GET", "scheduledevents", "vm-0")) for _ in range(3)]
    assert hits == [1, 1, 0]
    world.fault("reset", lasting="30s")
    clock.at(world, 29)
    assert world.faults.live
    clock.at(world, 30)
    assert not world.faults.live
    world.fault("garbage", name="g")
    assert (world.clear_faults("other"), world.clear_faults("g")) == (0, 1)
    kinds = [(r["what"], r["kind"]) for r in world.truth.records]
    assert kinds == [
        (w, k) for k in ("empty", "reset", "garbage") for w in ("fault-begun", "fault-ended")
    ]


def test_a_fault_hits_only_what_it_names():
    world, _ = make_world(vms=[{"name": "a"}, {"name": "b"}])
    world.fault("empty", paths=["instance"], methods=["GET"], vms=["B"])
    hit = world.faults.hit
    assert hit("GET", "instance", "b")
    assert not hit("GET", "instance", "a")
    assert not hit("POST", "instance", "b")
    assert not hit("GET", "scheduledevents", "b")


def test_delay_and_skew_combine_with_one_other_fault():
    world, _ = make_world()
    for kind in ("delay", "empty", "garbage", "skew"):
        world.fault(kind, count=1)
    met = world.faults.hit("GET", "scheduledevents", "vm-0")
    assert [fault.kind for fault in met] == ["delay", "empty", "skew"]
    assert [live.fault.kind for live in world.faults.live] == ["garbage"]


def test_a_fault_of_chance_falls_the_same_way_for_the_same_seed():
    def falls(seed: int) -> list[int]:
        world, _ = make_world(seed=seed)
        world.fault("empty", chance=0.5)
        return [len(world.faults.hit("GET", "scheduledevents", "vm-0")) for _ in range(40)]

    assert falls(1) == falls(1) != falls(2)
    assert 0 < sum(falls(1)) < 40
