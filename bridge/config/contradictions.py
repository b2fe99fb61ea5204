"""Find contradictions between sections: unusable rights, and votes that would not count.

The bridge does not start with a problem that `useless` finds. `uncounted` and `claimable` yield
warnings, as sentences for `seb check`.
"""

from collections.abc import Iterator

from bridge.config.approvals import ApprovalsSettings
from bridge.config.errors import ConfigProblem
from bridge.config.models import HttpSettings
from bridge.policy.allow import Allow
from bridge.policy.require import Approvers, Count
from bridge.policy.votes import AUTO, CONTROL, HTTP, SINK

_NO_USER = (
    "On the control socket, only signed votes count: no entry allows a user of this machine. "
    "For root, add {approver: uid 0, via: control}."
)


def useless(asked: ApprovalsSettings, http: HttpSettings) -> Iterator[ConfigProblem]:
    """Channels and tokens that do not exist, and required approvers who may not approve."""
    channels = sorted({CONTROL, HTTP, *asked.sources})
    scopes = {token.name: token.scopes for token in http.tokens}
    for number, rule in enumerate(asked.allow):
        place = ("approvals", "allow", number)
        if rule.token is not None and rule.token not in scopes:
            yield ConfigProblem((*place, "token"), f"{rule.token!r} is not in http.tokens")
        elif rule.token is not None and "approve" not in scopes[rule.token]:
            why = f"the token {rule.token} lacks the scope approve"
            yield ConfigProblem((*place, "token"), why)
        if rule.certificate is not None and not (http.listen and http.asks_for_certificates):
            why = "client certificates need http.listen and http.tls.client_ca"
            yield ConfigProblem((*place, "certificate"), why)
        elif rule.certificate is not None and rule.via not in (None, HTTP):
            yield ConfigProblem(
                (*place, "via"), f"{rule.via!r} has no certificates; only http does"
            )
        if rule.via is not None and rule.via not in channels:
            why = f"{rule.via!r} is not a channel; choose from {', '.join(channels)}"
            yield ConfigProblem((*place, "via"), why)
    yield from _never(asked)


def _never(asked: ApprovalsSettings) -> Iterator[ConfigProblem]:
    """Approvers whom the policy requires but who may not approve."""
    if not asked.allow or not isinstance(asked.require, Approvers):
        return
    may = {rule.approver for rule in asked.allow if "approve" in rule.decisions}
    for name in asked.require.approvers:
        if name not in may and name != AUTO and not name.startswith(f"{SINK}:"):
            why = f"{name} must approve, but no entry in approvals.allow lets it"
            yield ConfigProblem(("approvals", "require"), why)


def uncounted(asked: ApprovalsSettings) -> Iterator[str]:
    """Votes that would arrive but not count, in sentences for `seb check`."""
    if isinstance(asked.require, Count | Approvers):
        for name, source in asked.sources.items():
            if source.trust == "transport":
                why = "the policy requires verified approvers"
                yield f"From {name}, only signed approvals count, because {why}."
    if asked.allow and not any(_is_of_this_machine(rule) for rule in asked.allow):
        yield _NO_USER


def _is_of_this_machine(rule: Allow) -> bool:
    named = rule.approver == "local" or rule.approver.startswith("uid ")
    return named and rule.via in (None, CONTROL)


def claimable(asked: ApprovalsSettings) -> Iterator[str]:
    """Names that anyone on a trusted channel can claim, in sentences for `seb check`."""
    trusting = [name for name, source in asked.sources.items() if source.trust == "transport"]
    if not trusting or isinstance(asked.require, Count | Approvers):
        return
    for rule in asked.allow:
        if not rule.proves and rule.via is None:
            yield (
                f"Anyone who may publish to {' or '.join(trusting)} may vote as "
                f"{rule.approver}: its entry requires no proof and names no via."
            )
