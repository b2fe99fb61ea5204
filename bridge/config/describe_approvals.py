"""What a configuration does about approvals, in sentences, for `seb check`."""

from collections.abc import Iterator

from bridge.allowing import Allow
from bridge.config.approvals import Approvals
from bridge.config.models import Http
from bridge.config.rights import claimable, uncounted
from bridge.fields import write_duration
from bridge.quorum import Approvers, Count, Require

_TRUST = {
    "transport": "whoever may publish there is believed",
    "signed": "each must be signed",
}
_REQUIRE = {
    "any": "One approval is enough for all VMs of a scheduled event.",
    "each-resource": "A scheduled event is approved when each of its VMs was approved for.",
}
_LEADER = {
    "first-resource": "The bridge on the event's first VM tells Azure, each next one {} later.",
    "none": "Every bridge on one of the event's VMs tells Azure at once.",
}


def describe_approvals(asked: Approvals, http: Http) -> Iterator[str]:
    """Where they come from, who may give them, what is enough, and who acts."""
    for name, source in asked.sources.items():
        yield f"Approvals from {name} {source.describe()}; {_TRUST[source.trust]}."
    yield _local(asked, http)
    yield from (_entry(rule) for rule in asked.allow)
    if asked.allow:
        yield "Nobody else may vote, through whatever door."
    yield from claimable(asked)
    yield _enough(asked.require)
    yield from uncounted(asked)
    if asked.require != "any" and not asked.sources:
        yield (
            "Votes given to this bridge are not known to others, and approvals.from names no "
            "source: votes from several VMs will not come together."
        )
    yield from (f"Approves by itself {rule}." for rule in asked.auto)
    yield from _manner(asked)


def _local(asked: Approvals, http: Http) -> str:
    doors = ["the control socket"]
    names = [token.name for token in http.tokens if "approve" in token.scopes]
    if http.listen and names:
        doors.append(f"HTTP with the token {' or '.join(names)}")
    if http.listen and http.asks_for_certificates and asked.allow:
        doors.append("HTTP with a client certificate whose subject is listed")
    if http.listen and any(rule.keys and rule.via in (None, "http") for rule in asked.allow):
        doors.append("HTTP when they are signed")
    return f"Approvals are taken over {', and over '.join(doors)}."


def _entry(rule: Allow) -> str:
    parts = [f"{rule.approver} may {' and '.join(rule.decisions)}"]
    if rule.event_types:
        parts.append(f"{' or '.join(rule.event_types)} events")
    if rule.resources:
        parts.append(f"for VMs like {' or '.join(rule.resources)}")
    if rule.all_resources:
        parts.append("for all VMs of an event at once")
    if rule.via:
        parts.append(f"via {rule.via} only")
    proofs = [f"the token {rule.token}"] if rule.token else []
    if rule.certificate:
        proofs.append(f"the certificate {rule.certificate}")
    if rule.keys:
        proofs.append("one of its keys" if len(rule.keys) > 1 else "its key")
    if proofs:
        parts.append(f"proved by {' or '.join(proofs)}")
    return f"{', '.join(parts)}."


def _enough(require: Require) -> str:
    if isinstance(require, Count):
        return f"A scheduled event is approved by {require.count} different verified approvers."
    if isinstance(require, Approvers):
        names = ", ".join(require.approvers)
        return f"A scheduled event is approved when all of these have, verified: {names}."
    return _REQUIRE[require]


def _manner(asked: Approvals) -> Iterator[str]:
    yield _LEADER[asked.leader].format(write_duration(asked.takeover_after))
    hold, early = write_duration(asked.hold_timeout), write_duration(asked.early_grace)
    yield f"A hold counts for {hold}, and never stops Azure; a vote waits {early} for its event."
    if asked.remind:
        moments = " and ".join(write_duration(seconds) for seconds in asked.remind)
        yield f"While votes are missing, publishes approval.due {moments} before notBefore."
    if asked.answer_strays:
        yield "Publishes refusals of what no bridge acts on: one bridge of a topic should do that."
    if asked.dry_run:
        yield "Dry run: decides and publishes, and tells Azure nothing."
