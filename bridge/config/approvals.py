"""The `approvals` section: where votes come from, who may vote, and how many votes are enough."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bridge.common.fields import Duration, Secret, Settings
from bridge.plugins import ApprovalSettings
from bridge.policy.allow import Allow
from bridge.policy.auto import Auto
from bridge.policy.require import Approvers, Count, Require

_MOST_REMINDERS = 10


def _required(value: Any) -> Any:
    """Choose the form by its keys, so that an error message is about that form."""
    if isinstance(value, Mapping) and "count" in value and "approvers" in value:
        raise ValueError("has both count and approvers; give one of them")
    if isinstance(value, Mapping) and "approvers" in value:
        return Approvers.model_validate(value)
    if isinstance(value, Mapping) and "count" in value:
        return Count.model_validate(value)
    if value not in ("each-resource", "any") and not isinstance(value, Settings):
        raise ValueError("must be each-resource, any, {count: N} or {approvers: [NAME, …]}")
    return value


def _reminders(seconds: tuple[float, ...]) -> tuple[float, ...]:
    if len(seconds) > _MOST_REMINDERS or not all(seconds):
        raise ValueError(f"must be at most {_MOST_REMINDERS} durations, each more than 0s")
    return tuple(sorted(set(seconds), reverse=True))


class ApprovalsSettings(Settings):
    """Where approvals come from, how many are enough, and which bridge acts on them."""

    sources: Mapping[str, ApprovalSettings] = Field(
        {}, alias="from", description="each is {type: …} or {sink: NAME}, with its own keys"
    )
    require: Annotated[Require, BeforeValidator(_required)] = Field(
        "each-resource", description="each-resource: every VM of the event needs an approval"
    )
    allow: tuple[Allow, ...] = Field((), description="who may vote, and how; empty: everyone")
    auto: tuple[Auto, ...] = Field((), description="what this VM approves automatically")
    leader: Literal["first-resource", "none"] = Field(
        "first-resource", description="which bridge tells Azure; none: all of them"
    )
    takeover_after: Duration = Field(5.0, description="VM number n acts after n times this")
    early_grace: Duration = Field(30.0, description="how long a vote waits for its event")
    hold_timeout: Duration = Field(600.0, description="how long a hold counts")
    lookback: Duration = Field(3600.0, description="how far back a new source starts")
    margin: Duration = Field(5.0, description="approveBy is notBefore minus this")
    remind: Annotated[tuple[Duration, ...], AfterValidator(_reminders)] = Field(
        (), description="how long before notBefore to publish approval.due"
    )
    answer_strays: bool = Field(
        default=False, description="publish refusals of votes that no bridge acts on"
    )
    dry_run: bool = Field(default=False, description="decide and publish, but tell Azure nothing")

    @model_validator(mode="after")
    def _one_key_one_name(self) -> Self:
        owners: dict[Secret | str, str] = {}
        for rule in self.allow:
            proofs: list[Secret | str | None] = [rule.token, rule.certificate]
            proofs += [key.hmac or key.ed25519 for key in rule.keys]
            for proof in proofs:
                if proof is None:
                    continue
                if owners.setdefault(proof, rule.approver) != rule.approver:
                    both = f"{owners[proof]} and {rule.approver}"
                    raise ValueError(f"allow: {both} have the same key, token or certificate")
        return self
