"""Find contradictions between sections: unusable rights, and votes that would not count.

The bridge does not start with a problem that `useless` finds. `warnings` are sentences for
`seb check`.
"""

import math
from collections.abc import Iterator
from itertools import permutations

from bridge.config.approvals import ApprovalsSettings
from bridge.config.errors import ConfigProblem
from bridge.config.models import Config, HttpSettings, TokenSettings
from bridge.policy.allow import Allow, named
from bridge.policy.require import Approvers, Count
from bridge.policy.votes import AUTO, CONTROL, HTTP, SINK, is_reserved

SHORTEST_TOKEN = 16
_NO_USER = "On the control socket, only signed votes count: no entry allows a user of this machine."
_FOR_ROOT = " For root, add {approver: uid 0, via: control}."


def useless(asked: ApprovalsSettings, http: HttpSettings) -> Iterator[ConfigProblem]:
    """Channels and tokens that do not exist, and required approvers who may not approve."""
    channels = sorted({CONTROL, HTTP, *asked.sources})
    scopes = {token.name: token.scopes for token in http.tokens}
    for number, rule in enumerate(asked.allow):
        place = ("approvals", "allow", number)
        if rule.token is not None and rule.token not in scopes:
            # Not repeated here: it may be the secret itself.
            why = f"is not the name of a token in http.tokens ({', '.join(scopes) or 'none'})"
            yield ConfigProblem((*place, "token"), why)
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
    yield from _impostors(asked, http)
    yield from _never(asked)


def _impostors(asked: ApprovalsSettings, http: HttpSettings) -> Iterator[ConfigProblem]:
    """Tokens that would make their users an approver who has a key or a certificate."""
    bound = {rule.approver for rule in asked.allow if rule.keys or rule.certificate}
    given = {rule.token for rule in asked.allow}
    for number, token in enumerate(http.tokens):
        if token.name in bound and token.name not in given and "approve" in token.scopes:
            why = (
                f"{token.name} is an approver with a key or certificate, so a token of that name "
                f"could vote in its place; rename the token, or name it in the approver's entry"
            )
            yield ConfigProblem(("http", "tokens", number, "name"), why)


def _never(asked: ApprovalsSettings) -> Iterator[ConfigProblem]:
    """Approvers whom the policy requires but who may not approve."""
    if not asked.allow or not isinstance(asked.require, Approvers):
        return
    may = {rule.approver for rule in asked.allow if "approve" in rule.decisions}
    for name in asked.require.approvers:
        if name not in may and not is_reserved(name):
            why = f"{name} must approve, but no entry in approvals.allow lets it"
            yield ConfigProblem(("approvals", "require"), why)


def warnings(config: Config) -> Iterator[str]:
    """What the configuration allows but hardly means."""
    asked, http = config.approvals, config.http
    yield from _unsatisfiable(config)
    yield from _moot(asked)
    yield from _claimable(asked)
    yield from _uncounted(asked)
    yield from _unlisted(asked, http)
    yield from _proxied(http)
    for token in without_operate(http):
        yield (
            f"Token {token.name} may {' and '.join(token.scopes)}, but not drop or replay dead "
            f"letters, resume sinks or run drills: that needs the scope operate."
        )


def _proxied(http: HttpSettings) -> Iterator[str]:
    """Proxies that hide who calls, and callers who could name themselves."""
    if http.public_url and not http.trusted_proxies:
        yield (
            "Logs, audits and rate limits see the address of the proxy, not of its callers: "
            "http.trusted_proxies is empty."
        )
    for network in http.trusted_proxies:
        if network.prefixlen == 0:
            why = "any caller can name an address"
            yield f"http.trusted_proxies trusts everyone ({network}): {why}."


def without_operate(http: HttpSettings) -> list[TokenSettings]:
    """Tokens that may change something, but only by voting."""
    return [one for one in http.tokens if "approve" in one.scopes and "operate" not in one.scopes]


def weak_tokens(http: HttpSettings) -> Iterator[str]:
    """Tokens that nobody can use, and those that somebody could guess."""
    for number, token in enumerate(http.tokens):
        try:
            length = len(token.token.get())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            yield (
                f"http.tokens[{number}]: {token.token.file} cannot be read ({why}); until it can, "
                f"nobody can use the token {token.name}."
            )
            continue
        if length < SHORTEST_TOKEN:
            yield (
                f"http.tokens[{number}]: the token {token.name} has fewer than {SHORTEST_TOKEN} "
                f"characters, so it could be guessed; openssl rand -hex 32 makes a good one."
            )


def _unsatisfiable(config: Config) -> Iterator[str]:
    """A policy for which there are not enough approvers who can prove who they are."""
    asked = config.approvals
    if any(source.PROVES for source in asked.sources.values()):
        return
    why, able = None, _able(config)
    if isinstance(asked.require, Approvers):
        lacking = [name for name in asked.require.approvers if name not in able]
        lacking = [name for name in lacking if asked.allow or not _is_local(name)]
        if lacking:
            why = f"no key, token or certificate proves {' and '.join(lacking)}"
    elif isinstance(asked.require, Count):
        if len(able) + _local_users(config) < asked.require.count:
            names = ", ".join(sorted(able)) or "nobody"
            why = f"it needs {asked.require.count} verified approvers, and there are: {names}"
    elif asked.allow and not able and not any(_by_name(asked, rule) for rule in asked.allow):
        why = "no entry in approvals.allow can be used to approve"
    if why is not None:
        yield f"Nobody can satisfy approvals.require: {why}."


def _local_users(config: Config) -> float:
    """How many users of the control socket are approvers without being listed."""
    if config.approvals.allow:
        return 0
    return math.inf if config.control_group else 2


def _able(config: Config) -> set[str]:
    """Approvers who can cast a verified approval."""
    asked, http = config.approvals, config.http
    found = {f"{SINK}:{name}" for name, sink in config.sinks.items() if _votes(sink)}
    found |= {AUTO} if asked.auto else set()
    if http.listen is not None:
        tokens = [token.name for token in http.tokens if "approve" in token.scopes]
        names = {named(asked.allow, token) for token in tokens}
        found |= {name for name in names if not asked.allow or _may(asked, name, HTTP)}
    return found | {rule.approver for rule in asked.allow if _proves(rule, http)}


def _votes(sink: object) -> bool:
    return getattr(sink, "then", None) == "approve"


def _may(asked: ApprovalsSettings, name: str, via: str) -> bool:
    return any(
        rule.approver == name and "approve" in rule.decisions and rule.via in (None, via)
        for rule in asked.allow
    )


def _proves(rule: Allow, http: HttpSettings) -> bool:
    """Whether this entry alone, without a token, allows a verified approval."""
    subject = http.asks_for_certificates and "=" in rule.approver and rule.via in (None, HTTP)
    proof = rule.keys or rule.certificate or subject or _is_of_this_machine(rule)
    return bool(proof) and "approve" in rule.decisions


def _by_name(asked: ApprovalsSettings, rule: Allow) -> bool:
    """Whether an approval without proof can count by this entry."""
    return "approve" in rule.decisions and bool(_trusting(asked, rule))


def _trusting(asked: ApprovalsSettings, rule: Allow) -> list[str]:
    """The sources on which the entry applies to everyone who uses its name."""
    trusting = [name for name, source in asked.sources.items() if source.trust == "transport"]
    return [] if rule.proves else [name for name in trusting if rule.via in (None, name)]


def _moot(asked: ApprovalsSettings) -> Iterator[str]:
    """Limits of an entry that do not limit anybody."""
    for number, rule in enumerate(asked.allow):
        for name, globs in (("resources", rule.resources), ("event_types", rule.event_types)):
            if globs and "*" in globs:
                yield f"approvals.allow[{number}].{name} limits nothing: * matches everything."
    for (number, rule), (other, wider) in permutations(enumerate(asked.allow), 2):
        both = [one for one in _trusting(asked, rule) if one in _trusting(asked, wider)]
        if wider.approver == rule.approver and _is_wider(wider, rule):
            yield (
                f"The limits of approvals.allow[{number}] limit nothing: "
                f"approvals.allow[{other}] lets {rule.approver} do the same without them."
            )
        elif wider.approver != rule.approver and both and _is_wider(_here(wider), _here(rule)):
            yield (
                f"The limits of {rule.approver} limit nothing on {' and '.join(both)}: anyone who "
                f"may publish there may vote as {wider.approver} instead."
            )


def _here(rule: Allow) -> Allow:
    """The entry on a channel where it applies."""
    return rule.model_copy(update={"via": None})


def _is_wider(wider: Allow, rule: Allow) -> bool:
    """Whether *wider* allows all that *rule* does, and has fewer limits."""
    fewer = [
        (wider.via, rule.via),
        (wider.event_types, rule.event_types),
        (wider.resources, rule.resources),
    ]
    if any(mine not in (None, other) for mine, other in fewer):
        return False
    if not set(wider.decisions) >= set(rule.decisions) or (wider.proves and not rule.proves):
        return False
    return len(wider.decisions) > len(rule.decisions) or any(one != other for one, other in fewer)


def _uncounted(asked: ApprovalsSettings) -> Iterator[str]:
    """Votes that would arrive but not count, in sentences for `seb check`."""
    if isinstance(asked.require, Count | Approvers):
        for name, source in asked.sources.items():
            if source.trust == "transport":
                why = "the policy requires verified approvers"
                yield f"From {name}, only signed approvals count, because {why}."
    if asked.allow and not any(_is_of_this_machine(rule) for rule in asked.allow):
        # An entry does not help where the policy counts named approvers only.
        yield _NO_USER + ("" if isinstance(asked.require, Approvers) else _FOR_ROOT)


def _unlisted(asked: ApprovalsSettings, http: HttpSettings) -> Iterator[str]:
    """Tokens with the right to vote whose votes are refused."""
    listed = {rule.approver for rule in asked.allow if rule.via in (None, HTTP)}
    for token in http.tokens:
        if (
            asked.allow
            and "approve" in token.scopes
            and named(asked.allow, token.name) not in listed
        ):
            yield (
                f"Token {token.name} has the scope approve, but its votes are refused: "
                f"approvals.allow has no entry that lets it vote over HTTP."
            )


def _is_of_this_machine(rule: Allow) -> bool:
    return _is_local(rule.approver) and rule.via in (None, CONTROL)


def _is_local(name: str) -> bool:
    return name == "local" or name.startswith("uid ")


def _claimable(asked: ApprovalsSettings) -> Iterator[str]:
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
