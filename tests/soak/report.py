"""The report of a soak as text: the verdict first, then the figures."""

from collections import Counter
from collections.abc import Iterator

from soak.delivery_rules import missing
from soak.ledger import Ledger
from soak.recovery_rules import recoveries, usage
from soak.rulings import Breach, cause_of, duplicates

Verdicts = dict[str, list[Breach]]
WRONG = "every POST was allowed by policy at its last look"
LOST = "every owed CloudEvent arrived at every sink"
MOST_BREACHES = 20


def text(ledger: Ledger, verdicts: Verdicts) -> str:
    """All of it, for a terminal."""
    parts = [
        [headline(ledger, verdicts), ""],
        [*_guarantees(verdicts), ""],
        [*_figures(ledger, verdicts), ""],
        ["Duplicates, and what explains them", *_table(duplicate_rows(ledger)), ""],
        ["Longest recovery after each kind of fault", *_table(recovery_rows(ledger)), ""],
        ["Each bridge after its first minute, and at the end", *_table(usage_rows(ledger))],
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def headline(ledger: Ledger, verdicts: Verdicts) -> str:
    broken = sum(bool(found) for found in verdicts.values())
    length = f"{ledger.faults_over / 60:.1f} minutes, seed {ledger.seed}"
    if not broken:
        return f"All {len(verdicts)} guarantees were kept: {length}"
    return f"{broken} of {len(verdicts)} guarantees were broken: {length}"


def _guarantees(verdicts: Verdicts) -> Iterator[str]:
    for name, found in verdicts.items():
        yield f"  {'BROKEN' if found else 'kept  '}  {name}"
        for breach in found[:MOST_BREACHES]:
            yield f"            {breach}"
        if len(found) > MOST_BREACHES:
            yield f"            and {len(found) - MOST_BREACHES} more"


def figures(ledger: Ledger, verdicts: Verdicts) -> dict[str, str]:
    """The numbers that a reader looks for first."""
    posts = [record for record in ledger.truth if record["what"] == "approval"]
    accepted = [record for record in posts if record.get("status") == 200]
    played = [fault for fault in ledger.faults if not fault.note]
    skipped = sorted({f.kind for f in ledger.faults if f.note.startswith("skipped")})
    calm = [final.calm_after for final in ledger.finals if final.calm_after is not None]
    return {
        "lost": str(len(verdicts.get(LOST, []))),
        "wrongly approved": str(len(verdicts.get(WRONG, []))),
        "faults": f"{len(played)} of {len({fault.kind for fault in played})} kinds",
        "not played here": ", ".join(skipped) or "none",
        "scheduled events": str(len(ledger.stories)),
        "CloudEvents issued": str(len({(row.bridge, row.id) for row in ledger.rows})),
        "deliveries": str(len(ledger.deliveries)),
        "duplicates": str(sum(1 for _ in duplicates(ledger))),
        "StartRequests": f"{len(posts)}, {len(accepted)} accepted",
        "lost with a torn journal": str(_torn_away(ledger)),
        "calm again after": f"{max(calm, default=0):.1f} s" if calm else "never",
        "Kafka": f"{ledger.kafka}, {ledger.nodes} nodes",
    }


def _torn_away(ledger: Ledger) -> int:
    """CloudEvents that some sink never got, because the soak destroyed the journal first."""
    excused = {tuple(each) for each in ledger.excused}
    gone = {(row.bridge, row.id) for row, _ in missing(ledger)}
    return len(gone & excused)


def _figures(ledger: Ledger, verdicts: Verdicts) -> Iterator[str]:
    for name, value in figures(ledger, verdicts).items():
        yield f"  {name:<26}{value}"


Table = list[tuple[str, ...]]


def duplicate_rows(ledger: Ledger) -> Table:
    """Per sink: deliveries, duplicates, and how many of them each cause explains."""
    causes = ("kill", "timeout", "reconnect", "no cause")
    found: Counter[tuple[str, str]] = Counter()
    for each, _, fault in duplicates(ledger):
        found[each.sink, cause_of(fault) if fault else "no cause"] += 1
    arrived = Counter(each.sink for each in ledger.deliveries)
    rows: Table = [("sink", "deliveries", "duplicates", *causes)]
    for sink in ledger.sinks:
        of = [found[sink, cause] for cause in causes]
        rows.append((sink, str(arrived[sink]), str(sum(of)), *map(str, of)))
    return rows


def recovery_rows(ledger: Ledger) -> Table:
    times = sorted(recoveries(ledger).items(), key=lambda pair: -pair[1])
    counts = Counter(fault.kind for fault in ledger.faults)
    rows = [(kind, str(counts[kind]), f"{seconds:.1f} s") for kind, seconds in times]
    return [("fault", "times", "longest"), *rows]


def usage_rows(ledger: Ledger) -> Table:
    rows: Table = [
        ("bridge", "memory", "at the end", "files", "at the end", "threads", "at the end")
    ]
    for bridge, (first, last) in usage(ledger).items():
        memory = (f"{each.memory / 1024:.0f} MiB" for each in (first, last))
        files = (str(each.files) for each in (first, last))
        threads = (str(each.threads) for each in (first, last))
        rows.append((bridge, *memory, *files, *threads))
    return rows


def _table(rows: Table) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells)}".rstrip()
