"""Sessions and codes: they expire, end with their token, and are limited in number."""

from datetime import timedelta

import pytest
from support.clock import ShiftedClock

from bridge.config import TokenSettings
from bridge.web.access.sessions import MOST_CODES, MOST_FOR_ONE, Sessions


def token(name="ops", secret="secret", **more):
    return TokenSettings.model_validate({"name": name, "token": secret, **more})


@pytest.fixture
def clock():
    return ShiftedClock()


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


def test_a_session_has_the_rights_that_its_token_has_now(sessions):
    opened = sessions.open(token())
    assert opened.caller.scopes == {"read", "approve"}
    less = token(scopes=["read"])
    found = sessions.find(opened.id, opened.key, [token("other"), less])
    assert (found.name, found.by, found.scopes) == ("ops", "session", {"read"})


def test_neither_the_id_nor_the_key_is_enough(sessions):
    opened, other = sessions.open(token()), sessions.open(token())
    for name, key in (
        (opened.id, ""),
        (opened.id, other.key),
        ("", opened.key),
        (other.id, opened.key),
    ):
        assert sessions.find(name, key, [token()]) is None
    sessions.end(opened.id, other.key)
    assert sessions.find(opened.id, opened.key, [token()]) is not None


@pytest.mark.parametrize(
    "now", [[], [token("renamed")], [token(secret="changed")]], ids=["gone", "renamed", "changed"]
)
def test_a_session_ends_for_good_with_its_token(sessions, now):
    opened = sessions.open(token())
    assert sessions.find(opened.id, opened.key, now) is None
    assert sessions.find(opened.id, opened.key, [token()]) is None
    assert len(sessions) == 0


def test_a_session_ends_when_the_file_of_its_token_changes(sessions, tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    ours = token(secret={"file": str(file)})
    opened = sessions.open(ours)
    assert sessions.find(opened.id, opened.key, [ours]) is not None
    file.write_text("the second")
    assert sessions.find(opened.id, opened.key, [ours]) is None


def test_a_session_lasts_half_a_day_whatever_the_time_of_day_does(sessions, clock):
    opened = sessions.open(token())
    clock.stepped = timedelta(days=30)
    clock.ahead = timedelta(hours=11, minutes=59)
    assert sessions.find(opened.id, opened.key, [token()]) is not None
    clock.ahead = timedelta(hours=12)
    assert sessions.find(opened.id, opened.key, [token()]) is None


def test_a_token_has_so_many_sessions_and_the_oldest_goes_first(sessions):
    bystander = sessions.open(token("eyes"))
    opened = [sessions.open(token()) for _ in range(MOST_FOR_ONE + 3)]
    alive = [sessions.find(one.id, one.key, [token()]) is not None for one in opened]
    assert alive == [False] * 3 + [True] * MOST_FOR_ONE
    assert sessions.find(bystander.id, bystander.key, [token("eyes")]) is not None


def test_what_has_expired_takes_no_space(sessions, clock):
    sessions.open(token())
    clock.ahead = timedelta(hours=13)
    sessions.open(token("eyes"))
    assert len(sessions) == 1


def test_a_code_works_once(sessions):
    code, _ = sessions.issue_code(token())
    assert sessions.redeem("wrong", [token()]) is None
    assert sessions.redeem(code, [token("other"), token()]).name == "ops"
    assert sessions.redeem(code, [token()]) is None


def test_a_code_expires_and_needs_its_token(sessions, clock):
    first, second = sessions.issue_code(token())[0], sessions.issue_code(token())[0]
    assert sessions.redeem(first, [token("other")]) is None
    clock.ahead = timedelta(minutes=10)
    assert sessions.redeem(second, [token()]) is None


def test_codes_are_limited_and_the_oldest_goes_first(sessions):
    codes = [sessions.issue_code(token())[0] for _ in range(MOST_CODES + 1)]
    works = [sessions.redeem(code, [token()]) is not None for code in codes]
    assert works == [False] + [True] * MOST_CODES
