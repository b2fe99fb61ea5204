import pytest

from bridge.simulator import Unusable, load, shipped
from bridge.simulator.world.scenario import parse
from bridge.simulator.world.script import rehearse

SHIPPED = [
    "canceled",
    "flaky",
    "freeze",
    "hardware-failure",
    "multi-vm",
    "preempt",
    "reboot",
    "redeploy",
    "storm",
    "terminate",
]


def test_these_scenarios_are_shipped():
    assert set(SHIPPED) <= set(shipped())


@pytest.mark.parametrize("name", shipped())
def test_each_shipped_scenario_can_be_played(name):
    scenario = load(name)
    assert (scenario.name, bool(scenario.description)) == (name, True)
    rehearse(scenario)


def test_the_storm_has_a_hundred_events():
    assert sum(step.repeat for step in load("storm").script) == 100


def test_a_file_is_read_and_named_after_itself(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "vms: [{name: a}]\napi_versions: [2017-03-01]\nscript: [{create: {type: Freeze}}]\n"
    )
    scenario = load(file)
    assert (scenario.name, scenario.vms[0].name) == ("mine", "a")
    assert scenario.api_versions == ["2017-03-01"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1]", "f.yaml: it must be a mapping with keys such as vms and script"),
        ("a: [", "f.yaml: not YAML in line 1: "),
        ("scripts: []", "f.yaml: unknown key 'scripts'; did you mean 'script'? choose from name, "),
        ("vms: []", "f.yaml: vms: List should have at least 1 item"),
        ("vms: [{name: a}, {name: A}]", "f.yaml: two entries in vms have the same name"),
        (
            "script: [{create: {type: Rebot}}]",
            "f.yaml: script.0.create.type: 'Rebot' is not an event type; did you mean 'Reboot'?",
        ),
        (
            "script: [{create: {type: Reboot, notice: 15 min}}]",
            "f.yaml: script.0.create.notice: '15 min' is not a duration; write it like 500ms, 1s,",
        ),
        (
            "script: [{create: {type: Reboot, notise: 15m}}]",
            "f.yaml: script.0.create: unknown key 'notise'; did you mean 'notice'? choose from type,",
        ),
        (
            "script: [{at: 1s}]",
            (
                "f.yaml: script.0: a step must have exactly one of create, cancel, start, complete, "
                "reschedule, update, fault, clear_faults, disable, not none"
            ),
        ),
        (
            "script: [{cancel: a, start: a}]",
            "not cancel and start",
        ),
        ("script: [{repeat: 2, disable: true}]", "script.0: repeat is allowed only with create"),
        (
            "script: [{create: {type: Reboot, name: a}}, {cancel: b}]",
            "f.yaml: step 2 of script: no step creates 'b'; choose from a",
        ),
        (
            "script: [{fault: {kind: empty, vms: [b]}}]",
            "f.yaml: step 1 of script: there is no VM 'b'; choose from vm-0",
        ),
        ("script: [{fault: {kind: crash}}]", "script.0.fault.kind: Input should be 'status', "),
        (
            "script: [{fault: {kind: empty, status: 500}}]",
            "script.0.fault: status needs kind status or redirect, not empty",
        ),
        ("script: [{fault: {kind: empty, zzz: 3s}}]", "unknown key 'zzz'; choose from kind, "),
    ],
)
def test_a_bad_file_is_one_sentence_with_file_key_problem_and_what_is_allowed(text, expected):
    with pytest.raises(Unusable) as caught:
        parse(text, where="f.yaml", name="f")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_error_for_an_unknown_scenario_lists_all(tmp_path):
    with pytest.raises(Unusable, match=r"No such file.*canceled, .*flaky, .*terminate"):
        load("nothing")
    with pytest.raises(Unusable):
        load(tmp_path)


def test_a_file_that_is_not_text_is_unusable(tmp_path):
    (tmp_path / "f.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Unusable, match="not UTF-8"):
        load(tmp_path / "f.yaml")


def test_steps_can_refer_to_repeated_events_and_to_event_ids():
    parse(
        "script: [{repeat: 2, create: {type: Reboot, name: a}}, {cancel: A-2},"
        "{create: {type: Reboot, event_id: X-1}}, {cancel: x-1}]",
        where="f",
        name="f",
    )


def test_the_first_vm_can_be_renamed_and_its_events_follow():
    scenario = load("multi-vm").renamed("here")
    assert [vm.name for vm in scenario.vms] == ["here", "front-1", "back-0"]
    assert scenario.script[0].create is not None
    assert scenario.script[0].create.resources == ["here", "front-1"]


def test_a_script_creates_and_updates_events_of_types_that_nobody_knows_yet():
    script = "[{create: {name: a, type: Teleport}}, {update: {event: a, type: Hibernate}}]"
    scenario = parse(f"script: {script}", where="f.yaml", name="f")
    assert scenario.script[0].create is not None
    assert scenario.script[0].create.type == "Teleport"
    assert scenario.script[1].update is not None
    assert scenario.script[1].update.type == "Hibernate"
