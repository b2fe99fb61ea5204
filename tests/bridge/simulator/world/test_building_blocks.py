"""The parts of a scenario file, and the errors for wrong ones."""

from datetime import date

import pytest
from pydantic import TypeAdapter, ValidationError

from bridge.simulator import VM, NewEvent
from bridge.simulator.world.building_blocks import (
    DESCRIPTIONS,
    MINIMUM_NOTICE,
    SignedDuration,
    VersionText,
)


def test_a_wrong_key_is_answered_with_the_nearest_right_one():
    with pytest.raises(
        ValidationError, match=r"unknown key 'notcie'; did you mean 'notice'\? choose"
    ):
        NewEvent.model_validate({"type": "Reboot", "notcie": "5m"})
    with pytest.raises(ValidationError, match="unknown key 'xyzzy'; choose from name, vm_id"):
        VM.model_validate({"name": "a", "xyzzy": 1})


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("-90s", -90), (" -2m ", -120)])
def test_a_duration_of_a_clock_may_be_negative(text, seconds):
    assert TypeAdapter(SignedDuration).validate_python(text) == seconds


def test_an_api_version_may_be_written_without_quotes():
    assert TypeAdapter(VersionText).validate_python(date(2020, 7, 1)) == "2020-07-01"


def test_every_type_has_a_minimum_notice_and_a_description():
    assert set(MINIMUM_NOTICE) == set(DESCRIPTIONS)
    for kind in MINIMUM_NOTICE:
        assert NewEvent.model_validate({"type": kind}).notice is None
