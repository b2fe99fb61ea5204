from bridge.core.model import parse_instance
from bridge.simulator import Scenario
from bridge.simulator.endpoint.instance import write_instance


def test_instance_metadata_reads_back_and_differs_for_each_vm():
    scenario = Scenario.model_validate(
        {
            "vms": [
                {
                    "name": "set_0",
                    "scale_set": "set",
                    "hostname": "set000000",
                    "tags": {"a": "b:c"},
                },
                {"name": "alone", "zone": "2"},
            ]
        }
    )
    one, two = (
        parse_instance(write_instance(scenario, vm, seed=0, api_version="2021-02-01"))
        for vm in scenario.vms
    )
    assert (one.name, one.hostname, one.scale_set, one.zone) == ("set_0", "set000000", "set", None)
    assert one.tags == {"a": "b:c"}
    assert str(one.resource_id).endswith("/virtualMachineScaleSets/set/virtualMachines/0")
    assert (two.name, two.hostname, two.zone) == ("alone", "alone", "2")
    assert str(two.resource_id).endswith("/virtualMachines/alone")
    assert one.subscription == two.subscription
    assert one.vm_id != two.vm_id


def test_an_old_version_of_instance_metadata_has_fewer_fields():
    scenario = Scenario()
    written = write_instance(scenario, scenario.vms[0], seed=0, api_version="2017-12-01")
    assert "zone" in written["compute"]
    assert not {"tagsList", "osProfile", "resourceId"} & set(written["compute"])
