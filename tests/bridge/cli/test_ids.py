from bridge.cli.ids import ambiguous, matches, shortened

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "602D9444-AFDC-4513-B24B-AA5F13A16123"


def event(event_id, key=None):
    return {"eventId": event_id, "href": f"/api/v1/events/{key or event_id}"}


def test_an_id_is_shown_as_short_as_it_stays_unique():
    assert shortened([FIRST]) == {FIRST: "602D9444"}
    assert shortened([FIRST, SECOND]) == {FIRST: "602D9444-D", SECOND: "602D9444-A"}
    assert shortened(["E1", "E1-AND-MORE"]) == {"E1": "E1", "E1-AND-MORE": "E1-AND-M"}
    assert shortened([]) == {}


def test_what_is_shown_stands_for_the_event_again():
    events = [event(FIRST), event(SECOND)]
    for one, short in shortened([FIRST, SECOND]).items():
        assert [found["eventId"] for found in matches(short.lower(), events)] == [one]


def test_a_beginning_needs_six_characters_and_a_whole_id_none():
    events = [event(FIRST), event("E1"), event("strange id", "sha256-0a1b")]
    assert matches("602D9", events) == []
    assert matches("602D94", events) == [event(FIRST)]
    assert matches("e1", events) == [event("E1")]
    assert matches("SHA256-0", events) == [events[2]]


def test_a_whole_id_is_never_taken_for_a_beginning():
    events = [event("DRILL-1"), event("DRILL-12")]
    assert matches("drill-1", events) == [event("DRILL-1")]


def test_a_beginning_of_several_ids_names_them():
    events = [event(FIRST), event(SECOND)]
    said = ambiguous("602D94", matches("602D94", events))
    assert said == f"2 scheduled events begin with 602D94: {FIRST}, {SECOND}; give more of the id"
