"""The report names the verdict first, every breach, and why each duplicate came."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from soak.doctored import VM, fault, ledger
from soak.judge import verdicts
from soak.ledger import Ledger, Sample
from soak.page import page
from soak.recovery_rules import recoveries
from soak.report import duplicate_rows, figures, text


def told(doctored: Ledger) -> str:
    return text(doctored, verdicts(doctored))


def shown(doctored: Ledger) -> str:
    return page(doctored, verdicts(doctored))


def a_loss() -> Ledger:
    doctored = ledger()
    del doctored.deliveries[-1]
    return doctored


def a_duplicate() -> Ledger:
    doctored = ledger()
    found = next(each for each in doctored.deliveries if each.sink == "hook")
    doctored.deliveries.append(replace(found, at=found.at + 2))
    doctored.faults.append(fault("reset-connections", "webhook", found.at + 0.5, found.at + 0.5))
    return doctored


def test_it_begins_with_the_verdict():
    assert told(ledger()).startswith("All 15 guarantees were kept: 0.8 minutes, seed 1")
    assert told(a_loss()).startswith("1 of 15 guarantees were broken")


def test_it_names_every_breach():
    assert "BROKEN  every owed CloudEvent arrived at every sink" in told(a_loss())
    assert "never came to archive" in told(a_loss())
    assert "never came to archive" in shown(a_loss())


def test_it_counts_what_was_lost_and_what_was_wrongly_approved():
    doctored = a_loss()
    assert figures(doctored, verdicts(doctored))["lost"] == "1"
    assert figures(ledger(), verdicts(ledger()))["wrongly approved"] == "0"


def test_it_says_what_explains_the_duplicates_of_each_sink():
    rows = {row[0]: row[1:] for row in duplicate_rows(a_duplicate())}
    assert rows["sink"] == ("deliveries", "duplicates", "kill", "timeout", "reconnect", "no cause")
    assert rows["hook"] == ("5", "1", "0", "0", "1", "0")
    assert rows["bus"] == ("4", "0", "0", "0", "0", "0")


def test_a_recovery_counts_from_the_end_of_the_last_fault_that_kept_it_from_being_ready():
    doctored = ledger()
    doctored.faults += [fault("kill", VM, 10, 11), fault("node-kill", "kafka", 12, 14)]
    doctored.faults.append(fault("answer", "webhook", 12, 15))
    ready = {10: False, 12: False, 16: True}
    why = ["sink bus"]
    doctored.samples = [Sample(VM, 1, at, 1, 1, 1, is_so, why) for at, is_so in ready.items()]
    assert recoveries(doctored) == {"kill": 0.0, "node-kill": 2.0, "answer": 0.0}


class Assets(HTMLParser):
    """Everything that a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "link", "img", "iframe"}:
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name, _ in attrs if name in {"src", "href"}]


def test_the_page_loads_nothing_and_draws_the_timeline():
    made, assets = shown(a_duplicate()), Assets()
    assets.feed(made)
    assert assets.found == []
    assert not re.search(r"url\(|@import", made)
    assert made.count("<svg") == 1
    assert "prefers-color-scheme: dark" in made
    assert '<rect class="reconnect"' in made
    assert '<circle class="reconnect"' in made


def test_what_observed_systems_said_is_escaped():
    doctored = ledger()
    doctored.finals[0].calm_after, doctored.finals[0].why = None, "<script>alert(1)</script>"
    assert "<script>" not in shown(doctored)
