import json

import pytest
from hypothesis import given, settings
from support.chat_rules import check_teams, ill_meant, spoiled, told_of
from support.world import published

from bridge.plugins import read_format
from bridge.plugins.formats import find_format

PLUGIN = find_format("teams")
TEAMS = PLUGIN.open(read_format("teams"))


def lines(cloudevent) -> list[str]:
    card = check_teams(TEAMS.encode(cloudevent))
    first, *rest = card["body"]
    texts = [*first["items"], *rest]
    return ["".join(run["text"] for run in text["inlines"]) for text in texts]


@pytest.mark.parametrize("cloudevent", published().values(), ids=list(published()))
def test_every_type_is_a_card_that_teams_takes(cloudevent):
    check_teams(TEAMS.encode(cloudevent))


@pytest.mark.fuzz
@settings(max_examples=25)
@given(ill_meant())
def test_foreign_text_is_never_markdown_or_too_large(cloudevent):
    check_teams(TEAMS.encode(cloudevent))


@pytest.mark.parametrize("kind", sorted(kind.split(".", 2)[2][:-3] for kind in published()))
@pytest.mark.parametrize("text", ["\N{GRINNING FACE}" * 20_000, '"' * 60_000, "{{<at" * 12_000])
def test_even_the_largest_card_is_small_enough(kind, text):
    usual = told_of(kind)
    worst = spoiled(usual.data, lambda _: text)
    assert len(TEAMS.encode(told_of(kind, **worst))) <= 28 * 1024


def test_it_says_what_happens_to_whom_when_and_what_to_do():
    headline, sentence, todo, *facts = lines(told_of("scheduled"))
    assert headline == "In 14 min: Reboot of FrontEnd_IN_0 and BackEnd_IN_0"
    assert sentence.startswith("Azure will reboot FrontEnd_IN_0 and BackEnd_IN_0, not before 2026")
    assert todo == "When ready: seb approve 602D9444-D2CD-49C7-8624-8643E7171297"
    assert "Cause: User" in facts
    assert facts[-1] == told_of("scheduled").id


@pytest.mark.parametrize(
    ("kind", "style"),
    [("completed", "good"), ("scheduled", "warning"), ("source.degraded", "attention")],
)
def test_the_color_tells_how_bad_it_is(kind, style):
    assert check_teams(TEAMS.encode(told_of(kind)))["body"][0]["style"] == style


def test_what_a_card_would_put_in_by_itself_is_broken_up():
    [sentence] = [
        line
        for line in lines(told_of("scheduled", description="{{DATE(x)}} <at>a</at>"))
        if "says" in line
    ]
    assert "{\u200b{DATE(x)}} <\u200bat>a</at>" in sentence


def test_old_news_and_housekeeping_stay_out_of_the_channel():
    assert PLUGIN.stale == "skip"
    assert not TEAMS.wants(told_of("source.snapshot"))
    assert not TEAMS.wants(told_of("bridge.audited"))
    assert TEAMS.wants(told_of("approval.recorded"))
    assert TEAMS.content_type == "application/json"
    assert json.loads(TEAMS.encode(told_of("started")))["attachments"][0]["contentUrl"] is None
