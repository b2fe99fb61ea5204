"""One plain sentence for each CloudEvent, readable at 3 a.m.: what, which VM, when, why.

It reads the CloudEvent and nothing else: "in 15 min" counts from the CloudEvent's own `time`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bridge.plugins import CloudEvent, kind_of
from sinks.formats._human import clean, command, list_names, read_moment, say_moment
from sinks.formats._phrases import LONGEST_WORD, Story, list_facts

LONGEST_QUOTE = 500
_ANY_APPROVER = "any"
"""Who is missing when one approval is enough and none has arrived."""


@dataclass(frozen=True, slots=True)
class Told:
    """A CloudEvent in words. `todo` is what to type, if there is something to do."""

    headline: str
    sentence: str
    facts: tuple[tuple[str, str], ...]
    todo: str | None


def tell(cloudevent: CloudEvent) -> Told:
    envelope = cloudevent.envelope
    data = envelope.pop("data")
    now = read_moment(envelope.get("time")) or datetime.fromtimestamp(0, UTC)
    story = Story(kind_of(cloudevent), now, data, envelope)
    headline, sentence = _TELLERS.get(story.kind, _other)(story)
    if data.get("drill"):
        headline = f"DRILL: {headline}"
        sentence = f"This is a drill, of which Azure knows nothing. Were it real: {sentence}"
    todo = command("approve", data.get("eventId")) if _can_approve(story) else None
    return Told(headline, sentence, list_facts(story), todo)


def _can_approve(story: Story) -> bool:
    return bool(story.data.get("approvable")) or story.kind == "approval.due"


def _scheduled(story: Story) -> tuple[str, str]:
    headline = f"{story.ahead}: {story.what}" if story.ahead else f"{story.what} is announced"
    return headline, f"Azure will {story.does}{_when(story)}.{_why(story)}"


def _updated(story: Story) -> tuple[str, str]:
    changed = list_names(sorted(story.data.get("changes") or {}))
    how = f" What changed: {changed}." if changed else ""
    return (
        f"{story.what} has changed",
        f"The plan has changed: Azure will {story.does}{_when(story)}.{how}{_why(story)}",
    )


def _when(story: Story) -> str:
    if story.due is None:
        return ", and does not say when"
    return f", not before {story.due} unless it is approved earlier"


def _why(story: Story) -> str:
    text = clean(story.data.get("description") or "", LONGEST_QUOTE)
    return f' Azure says: "{text}"' if text else ""


def _started(story: Story) -> tuple[str, str]:
    alone = "" if story.data.get("previousStatus") else " It was not announced before."
    last = " Expect nothing more from the affected VMs." if story.data.get("terminal") else ""
    sentence = f"Azure has started to {story.does}.{alone}{last}{_why(story)}"
    return f"{story.what} has started", sentence


def _completed(story: Story) -> tuple[str, str]:
    seen = " The bridge did not see it end; this is deduced." if story.data.get("inferred") else ""
    return f"{story.what} is over", f"The {story.what} is over.{seen}"


def _canceled(story: Story) -> tuple[str, str]:
    gone = f"Azure no longer announces the {story.what}."
    return f"{story.what} is canceled", f"{gone} As far as the bridge can tell, it did not happen."


def _recorded(story: Story) -> tuple[str, str]:
    decision, approver = _decision(story), story.word("approver", "someone")
    missing, holds = story.votes("missing"), story.votes("holds")
    left = f" Still missing: {missing}." if missing else ""
    left = " Nobody has approved yet." if missing == _ANY_APPROVER else left
    held = f" Held by {holds}; Azure does not wait for holds." if holds else ""
    dry = " Dry run: the bridge tells Azure nothing." if story.data.get("dryRun") else ""
    return (
        f"{decision} counted for {story.what}",
        f"The {decision} by {approver} counts for the {story.what}.{left}{held}{dry}",
    )


def _granted(story: Story) -> tuple[str, str]:
    last = f"The last vote came from {story.word('approver', 'somebody')}."
    sentence = f"Azure was told that the {story.what} may go ahead; it can start at any moment."
    return f"{story.what} may go ahead", f"{sentence} {last}"


def _refused(story: Story) -> tuple[str, str]:
    decision, approver = _decision(story), story.word("approver", "someone")
    why = f"{story.word('reason')}{_detail(story)}"
    return (
        f"{decision} refused for {story.what}",
        f"The {decision} by {approver} for the {story.what} does not count: {why}",
    )


def _decision(story: Story) -> str:
    return {"approve": "approval"}.get(
        str(story.data.get("decision")), story.word("decision", "vote")
    )


def _failed(story: Story) -> tuple[str, str]:
    late = f"the bridge could not tell Azure in time{_detail(story)}"
    return (
        f"approval of {story.what} did not reach Azure",
        f"The {story.what} was approved, but {late}",
    )


def _due(story: Story) -> tuple[str, str]:
    missing, holds = story.votes("missing"), story.votes("holds")
    wanted = [
        "an approval" if missing == _ANY_APPROVER else missing,
        holds and f"a release by {holds}",
    ]
    waits = " and ".join(one for one in wanted if one) or "votes"
    when = f" at {story.due}" if story.due else ""
    return (
        f"{story.what} waits for approval",
        f"The {story.what} still waits for {waits}. Azure goes ahead{when} anyway.",
    )


def _detail(story: Story) -> str:
    text = clean(story.data.get("detail") or "", LONGEST_QUOTE)
    return f": {text}" if text else "."


def _degraded(story: Story) -> tuple[str, str]:
    vm, since = story.word("vm", story.observer), read_moment(story.data.get("since"))
    began = f" since {say_moment(since)}" if since else ""
    status = story.data.get("status")
    why = f"{story.word('reason')}, HTTP {status}" if status else story.word("reason")
    sentence = f"The metadata service has given {vm} no usable answer{began} ({why})."
    headline = f"{vm} cannot see its scheduled events"
    return headline, f"{sentence} Until it answers, the bridge cannot see what Azure announces."


def _recovered(story: Story) -> tuple[str, str]:
    vm = story.word("vm", story.observer)
    return f"{vm} sees its scheduled events again", f"The metadata service answers {vm} again."


def _snapshot(story: Story) -> tuple[str, str]:
    vm, pending = story.word("vm", story.observer), story.data.get("pending") or []
    count = len(pending) + (story.data.get("pendingTruncated") or 0)
    return f"{count} pending on {vm}", f"Scheduled events that are pending on {vm}: {count}."


def _audited(story: Story) -> tuple[str, str]:
    action, actor = story.word("action"), story.word("actor", "someone")
    where = f" from {story.word('address')}" if story.data.get("address") else ""
    return f"{action} on {story.observer}", f"{actor}, via {story.word('via')}{where}: {action}."


def _other(story: Story) -> tuple[str, str]:
    kind, subject = clean(story.kind, 60), clean(story.attributes.get("subject"), LONGEST_WORD)
    return f"{kind}: {subject}", f"{kind} about {subject}, as {story.observer} reports."


_TELLERS: Mapping[str, Callable[[Story], tuple[str, str]]] = {
    "scheduled": _scheduled,
    "updated": _updated,
    "started": _started,
    "completed": _completed,
    "canceled": _canceled,
    "approval.recorded": _recorded,
    "approval.granted": _granted,
    "approval.refused": _refused,
    "approval.failed": _failed,
    "approval.due": _due,
    "source.degraded": _degraded,
    "source.recovered": _recovered,
    "source.snapshot": _snapshot,
    "bridge.audited": _audited,
}
