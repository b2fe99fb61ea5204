"""The one severity table, against what messages and outcomes publish."""

from dataclasses import astuple, replace

import pytest
from support.cloudevents import make
from support.world import (
    EVENT_ID,
    NOON,
    OBSERVER,
    World,
    outcomes_told,
    published,
    scheduled_event,
    started,
)

from bridge.approvals.outcomes import Cause, Outcome, outcome
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.plugins import severity

CAUSE = Cause("a-1", "/orders\x1fa-1", "approve", "orders", "orders-bus")
KIND = {each.type.split(".", 2)[2].removesuffix(".v1"): each for each in published().values()}


def told(event_type: str, *, announced: bool = True, begun: bool = False) -> CloudEvent:
    world, event = World(), scheduled_event(event_type=event_type)
    found = world.see(event) if announced else []
    found = world.see(started(event)) if begun else found
    return messages.transition(found[-1], OBSERVER, NOON, 1)


def refused(reason: str) -> CloudEvent:
    return outcome(Outcome("refused", EVENT_ID, CAUSE, reason=reason), OBSERVER, NOON)


def audited(action: str) -> CloudEvent:
    return messages.audited(action, OBSERVER, NOON, actor="ops", via="http", detail={})


SITUATIONS = [
    # syslog, CEF, LEEF, OCSF, OpenTelemetry
    (told("Freeze"), (5, 3, 3, 2, 10)),
    (told("Freeze", begun=True), (5, 3, 3, 2, 10)),
    (told("Reboot"), (4, 5, 5, 3, 13)),
    (told("Redeploy"), (4, 5, 5, 3, 13)),
    (told("SomethingNew"), (4, 5, 5, 3, 13)),
    (told("Reboot", begun=True), (4, 7, 7, 4, 14)),
    (told("Redeploy", begun=True), (4, 7, 7, 4, 14)),
    (told("Preempt"), (3, 8, 8, 4, 17)),
    (told("Terminate", begun=True), (3, 8, 8, 4, 17)),
    (told("Freeze", announced=False, begun=True), (2, 9, 9, 5, 18)),
    (KIND["updated"], (4, 5, 5, 3, 13)),
    (KIND["completed"], (6, 1, 1, 1, 9)),
    (KIND["canceled"], (6, 1, 1, 1, 9)),
    (KIND["approval.recorded"], (6, 1, 1, 1, 9)),
    (KIND["approval.granted"], (6, 1, 1, 1, 9)),
    (KIND["approval.due"], (4, 5, 5, 3, 13)),
    (KIND["approval.failed"], (2, 9, 9, 5, 18)),
    (refused("expired"), (4, 7, 7, 4, 13)),
    (refused("unauthorized"), (3, 8, 8, 4, 17)),
    (refused("replayed"), (3, 8, 8, 4, 17)),
    (KIND["source.degraded"], (4, 5, 5, 3, 17)),
    (KIND["source.recovered"], (6, 1, 1, 1, 9)),
    (KIND["source.snapshot"], (6, 1, 1, 1, 9)),
    (KIND["bridge.audited"], (6, 1, 1, 1, 9)),
    (audited("configuration.loaded"), (6, 1, 1, 1, 9)),
    (audited("dead-letter.dropped"), (6, 1, 1, 1, 9)),
    (audited("token.refused"), (4, 7, 7, 4, 13)),
    (audited("certificate.refused"), (4, 7, 7, 4, 13)),
    (audited("journal.lost"), (3, 8, 8, 4, 17)),
    (audited("journal.set-aside"), (3, 8, 8, 4, 17)),
]


@pytest.mark.parametrize(("cloudevent", "row"), SITUATIONS)
def test_each_situation_has_its_row(cloudevent: CloudEvent, row: tuple[int, ...]):
    assert astuple(severity(cloudevent)) == row


@pytest.mark.parametrize("cloudevent", [*published().values(), *outcomes_told()])
def test_the_table_agrees_with_the_published_number(cloudevent: CloudEvent):
    assert severity(cloudevent).otel == cloudevent.attributes["severitynumber"]


@pytest.mark.parametrize(("number", "row"), [(1, 9), (12, 10), (16, 14), (24, 18)])
def test_an_unpublished_number_has_the_row_below_it(number: int, row: int):
    cloudevent = make()
    body = cloudevent.body.replace(b'"severitynumber":13', b'"severitynumber":%d' % number)
    assert severity(replace(cloudevent, body=body)).otel == row
