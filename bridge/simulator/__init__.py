"""The Azure metadata service that nobody has, faithful and faulty.

Read `world` first: it is what happens. `service` and `wire` are how Azure would say it, `faults`
and `spoil` how it goes wrong, `server`, `control` and `running` the HTTP around it.
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
