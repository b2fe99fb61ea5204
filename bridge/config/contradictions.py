"""Where two sections contradict each other: rights without a use, and votes that would not count.

`useless` finds problems, with which nothing starts. `uncounted` and `claimable` are warnings, as
sentences for `seb check`.
"""

from collections.abc import Iterator

from bridge.config.approvals import ApprovalsSettings
from bridge.config.errors import ConfigProblem
from bridge.config.models import HttpSettings
from bridge.policy.allow import Allow
from bridge.policy.require import Approvers, Count
from bridge.policy.votes import AUTO, CONTROL, HTTP, SINK

_NO_USER = (
    "On the control socket only signed votes count: no entry is for a user of this machine, "
    "as {approver: uid 0, via: control} would be for root."
)


def useless(asked: ApprovalsSettings, http: HttpSettings) -> Iterator[ConfigProblem]:
    """A channel or token that is not there, and approvers whom the policy awaits in vain."""
    channels = sorted({CONTROL, HTTP, *asked.sources})
    scopes = {token.name: token.scopes for token in http.tokens}
    for number, rule in enumerate(asked.allow):
        place = ("approvals", "allow", number)
        if rule.token is not None and rule.token not in scopes:
            yield ConfigProblem((*place, "token"), f"{rule.token!r} is no name in http.tokens")
        elif rule.token is not None and "approve" not in scopes[rule.token]:
            yield ConfigProblem((*place, "token"), f"the token {rule.token} has no scope approve")
        if rule.certificate is not None and not (http.listen and http.asks_for_certificates):
            why = "nobody asks for certificates; that needs http.listen and http.tls.client_ca"
            yield ConfigProblem((*place, "certificate"), why)
        elif rule.certificate is not None and rule.via not in (None, HTTP):
            yield ConfigProblem(
                (*place, "via"), f"{rule.via!r} shows no certificates; only http does"
            )
        if rule.via is not None and rule.via not in channels:
            there_are = f"is no channel; there are {', '.join(channels)}"
            yield ConfigProblem((*place, "via"), f"{rule.via!r} {there_are}")
    yield from _never(asked)


def _never(asked: ApprovalsSettings) -> Iterator[ConfigProblem]:
    """Approvers whom the policy waits for, and who may not approve."""
    if not asked.allow or not isinstance(asked.require, Approvers):
        return
    may = {rule.approver for rule in asked.allow if "approve" in rule.decisions}
    for name in asked.require.approvers:
        if name not in may and name != AUTO and not name.startswith(f"{SINK}:"):
            why = f"{name} has no entry in approvals.allow by which it may approve"
            yield ConfigProblem(("approvals", "require"), why)


def uncounted(asked: ApprovalsSettings) -> Iterator[str]:
    """Whose votes would arrive and count for nobody, in sentences for `seb check`."""
    if isinstance(asked.require, Count | Approvers):
        for name, source in asked.sources.items():
            if source.trust == "transport":
                why = "the policy asks for verified approvers"
                yield f"From {name} only signed approvals count, for {why}."
    if asked.allow and not any(_is_of_this_machine(rule) for rule in asked.allow):
        yield _NO_USER


def _is_of_this_machine(rule: Allow) -> bool:
    named = rule.approver == "local" or rule.approver.startswith("uid ")
    return named and rule.via in (None, CONTROL)


def claimable(asked: ApprovalsSettings) -> Iterator[str]:
    """Names that anybody on a channel of trust may take, in sentences for `seb check`."""
    trusting = [name for name, source in asked.sources.items() if source.trust == "transport"]
    if not trusting or isinstance(asked.require, Count | Approvers):
        return
    for rule in asked.allow:
        if not rule.proves and rule.via is None:
            yield (
                f"Whoever may publish to {' or '.join(trusting)} may vote there as "
                f"{rule.approver}: its entry asks for no proof and names no via."
            )
