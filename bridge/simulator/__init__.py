"""A simulated Azure metadata service, with faults on demand.

Read `world.world` first: it is what happens, as `world.scenario` and `world.script` describe it.
`endpoint.service` and `endpoint.wire` answer as Azure does. `world.faults` and `endpoint.damage`
make answers go wrong. `endpoint.server` and `endpoint.control_api` are the HTTP around it,
`simulator` puts everything together, and `command` is `seb simulate`.
"""

from bridge.simulator.simulator import Simulator
from bridge.simulator.world.building_blocks import VM, NewEvent
from bridge.simulator.world.faults import Fault
from bridge.simulator.world.rules import Refused, Unknown
from bridge.simulator.world.scenario import Scenario, Unusable, load, shipped
from bridge.simulator.world.world import World

__all__ = [
    "VM",
    "Fault",
    "NewEvent",
    "Refused",
    "Scenario",
    "Simulator",
    "Unknown",
    "Unusable",
    "World",
    "load",
    "shipped",
]
