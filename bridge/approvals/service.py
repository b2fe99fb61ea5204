"""The approval path of one bridge, built once: from a message to the StartRequest."""

import json
from dataclasses import dataclass, field

from bridge.approvals.automation import Automation
from bridge.approvals.decisions import Decisions
from bridge.approvals.intake import Intake
from bridge.approvals.listeners import Listeners
from bridge.approvals.publisher import Publisher
from bridge.approvals.start_requests import Azure, StartRequests
from bridge.common.errors import Unavailable
from bridge.core.cloudevent import CloudEvent
from bridge.plugins import Delivery
from bridge.policy.votes import SINK
from bridge.runtime.runtime import Runtime
from bridge.telemetry.context import TRACEPARENT


@dataclass(slots=True)
class ApprovalService:
    """All parts of the path. Once it is built, the bridge accepts votes."""

    runtime: Runtime
    azure: Azure
    intake: Intake = field(init=False)
    decisions: Decisions = field(init=False)
    listeners: Listeners = field(init=False)

    def __post_init__(self) -> None:
        runtime, publisher = self.runtime, Publisher(self.runtime)
        self.intake = Intake(runtime, publisher)
        start_requests = StartRequests(runtime, publisher, self.azure, self.intake.voting)
        automation = Automation(runtime, publisher, self.intake.assessor)
        self.decisions = Decisions(runtime, publisher, self.intake, automation, start_requests)
        self.listeners = Listeners(runtime, self.intake)
        runtime.take_local = self.intake.take_local

    async def vote_for_sink(self, event: CloudEvent, sink: str) -> None:
        """A sink's `then: approve`: this VM's vote on what it got, once for each CloudEvent."""
        mine = self.runtime.identity.vm_name
        if mine is None:
            raise Unavailable("the bridge does not accept approvals yet")
        said = {
            "eventId": event.data["eventId"],
            "resource": mine,
            "seen": event.id,
            "id": f"{sink}:{event.id}",
        }
        if (trace := event.attributes.get(TRACEPARENT)) is not None:
            said[TRACEPARENT] = trace
        await self.intake.take_local(Delivery(json.dumps(said).encode()), SINK, f"sink:{sink}")
