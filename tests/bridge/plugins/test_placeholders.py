"""The names of this VM in topics and paths, made safe."""

import pytest

from bridge.plugins import Place, Unavailable

PLACE = Place(
    {"vm_name": "web-1", "vm_id": None, "location": "west/europe", "resource_group": "..", "x": "#"}
)


def test_names_are_filled_in():
    assert PLACE.fill("events/{vm_name}/{subject}", subject="A-1") == "events/web-1/A-1"
    assert PLACE.fill("nothing") == "nothing"


@pytest.mark.parametrize(
    ("name", "value"), [("location", "west_europe"), ("resource_group", "_"), ("x", "_")]
)
def test_a_name_never_leaves_its_topic_level_or_directory(name, value):
    assert PLACE.fill(f"a/{{{name}}}/b") == f"a/{value}/b"


def test_a_name_from_the_cloudevent_is_made_safe_too():
    assert PLACE.fill("{subject}", subject="../+/#") == "..____"


@pytest.mark.parametrize("name", ["vm_id", "subscription"])
def test_a_name_that_is_not_known_yet_is_unavailable(name):
    with pytest.raises(Unavailable, match=f"{{{name}}} is not known yet"):
        PLACE.fill(f"{{{name}}}")


def test_templates_are_validated_without_their_values():
    assert Place.validate("a/{vm_name}/{location}") == "a/{vm_name}/{location}"
    assert Place.validate("{subject}", "subject") == "{subject}"
    for wrong in ("{subject}", "{vm}", "{}", "a{ vm_name }"):
        with pytest.raises(ValueError, match="is unknown; choose from observer, vm_name"):
            Place.validate(wrong)
