"""The identity of a simulated VM: instance metadata, and tokens of its managed identity."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from bridge.simulator.world.building_blocks import VM
from bridge.simulator.world.scenario import Scenario

_IDS = uuid.UUID("3c2b5a0f-5a7f-5f0e-8d19-8b6b5a3f0a11")

VERSIONS = (
    *("2017-03-01", "2017-04-02", "2017-08-01", "2017-10-01", "2017-12-01"),
    *("2018-02-01", "2018-04-02", "2018-10-01", "2019-02-01", "2019-03-11"),
    *("2019-04-30", "2019-06-01", "2019-06-04", "2019-08-01", "2019-08-15"),
    *("2019-11-01", "2020-06-01", "2020-07-15", "2020-09-01", "2020-10-01"),
    *("2020-12-01", "2021-01-01", "2021-02-01", "2021-03-01", "2021-05-01"),
    *("2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13", "2023-07-01"),
    *("2023-11-15", "2024-03-15", "2024-07-17", "2025-04-07"),
)
TOKEN_VERSIONS = tuple(version for version in VERSIONS if version >= "2018-02-01")
_FIELDS_SINCE = {
    "resourceGroupName": "2017-08-01",
    "subscriptionId": "2017-08-01",
    "tags": "2017-08-01",
    "vmScaleSetName": "2017-12-01",
    "zone": "2017-12-01",
    "azEnvironment": "2018-10-01",
    "resourceId": "2019-03-11",
    "tagsList": "2019-06-04",
    "osProfile": "2020-07-15",
}


def vm_id(scenario: Scenario, vm: VM, seed: int) -> str:
    """The same for the same scenario, seed and name."""
    return vm.vm_id or str(uuid.uuid5(_IDS, f"{scenario.name}/{seed}/{vm.name}"))


def write_instance(scenario: Scenario, vm: VM, *, seed: int, api_version: str) -> dict[str, Any]:
    compute = {
        "azEnvironment": "AzurePublicCloud",
        "location": scenario.location,
        "name": vm.name,
        "osProfile": {"computerName": vm.hostname or vm.name},
        "osType": "Linux",
        "resourceGroupName": scenario.resource_group,
        "resourceId": _resource_id(scenario, vm),
        "subscriptionId": scenario.subscription,
        "tags": ";".join(f"{name}:{value}" for name, value in vm.tags.items()),
        "tagsList": [{"name": name, "value": value} for name, value in vm.tags.items()],
        "vmId": vm_id(scenario, vm, seed),
        "vmScaleSetName": vm.scale_set,
        "vmSize": vm.size,
        "zone": vm.zone,
    }
    shown = {k: v for k, v in compute.items() if _FIELDS_SINCE.get(k, "") <= api_version}
    return {"compute": shown, "network": {"interface": []}}


def _resource_id(scenario: Scenario, vm: VM) -> str:
    group = f"/subscriptions/{scenario.subscription}/resourceGroups/{scenario.resource_group}"
    compute = f"{group}/providers/Microsoft.Compute"
    if vm.scale_set:
        number = vm.name.removeprefix(f"{vm.scale_set}_")
        return f"{compute}/virtualMachineScaleSets/{vm.scale_set}/virtualMachines/{number}"
    return f"{compute}/virtualMachines/{vm.name}"


def write_token(resource: str, client_id: str, *, now: datetime, lifetime: float) -> dict[str, str]:
    """A token in the form of a real one, with all values as text; no service accepts it."""
    expires = now + timedelta(seconds=lifetime)
    return {
        "access_token": f"simulated.{uuid.uuid5(_IDS, f'{resource}/{now.isoformat()}').hex}",
        "client_id": client_id,
        "expires_in": str(int(lifetime)),
        "expires_on": str(int(expires.timestamp())),
        "ext_expires_in": str(int(lifetime)),
        "not_before": str(int(now.timestamp())),
        "resource": resource,
        "token_type": "Bearer",
    }
