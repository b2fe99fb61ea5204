"""The judge finds a bridge that does not recover, does not stop in order, or leaks."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from soak.doctored import VM, fault, ledger, said
from soak.ledger import Ledger, Sample


def no_calm(doctored: Ledger) -> None:
    doctored.finals[0].calm_after, doctored.finals[0].why = None, "/readyz says 503"


def dead_letters(doctored: Ledger) -> None:
    doctored.finals[0].dead_letters = 2


def waiting(doctored: Ledger) -> None:
    doctored.finals[0].waiting = 3


def killed(doctored: Ledger) -> None:
    doctored.finals[0].exit_code = None


def stuck(doctored: Ledger) -> None:
    doctored.faults.append(replace(fault("full-disk", VM, 5, 35), note="broke: TimeoutError: "))


def leaking(doctored: Ledger) -> None:
    doctored.samples.append(Sample(VM, 1, 55.0, 60_000, 400, 8, True))


@pytest.mark.parametrize(
    ("doctor", "sentence"),
    [
        (no_calm, f"{VM} after 90 s: /readyz says 503"),
        (dead_letters, f"{VM} has 2 dead letters"),
        (waiting, f"{VM} left 3 CloudEvents undelivered"),
        (killed, f"{VM} ended with None after SIGTERM"),
        (stuck, f"full-disk of {VM} broke: TimeoutError: "),
        (leaking, f"{VM} uses open files that it did not in its first minute: 320"),
    ],
)
def test_a_bridge_that_is_not_well_afterward_is_found(
    doctor: Callable[[Ledger], None], sentence: str
):
    doctored = ledger()
    doctor(doctored)
    assert said(doctored) == [sentence]
