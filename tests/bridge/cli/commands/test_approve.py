"""`seb approve`, `seb hold` and `seb release`, at a bridge that is really served."""

import base64
import json

import pytest
from support.served_bridge import announce, end
from support.signing import Signer
from support.voting_bridge import ALONE, FIRST, GRANTED, SECOND, polls, write_config
from support.world import ME, OTHER

from bridge.cli import main
from bridge.cli.commands import approve
from bridge.cli.voting.cast import Voting
from bridge.common.signatures import verify
from bridge.journal.votes import votes
from bridge.policy.message import read, unwrap

ORDERS = Signer("orders", seed=1)
PRIVATE = f"whsk_{base64.b64encode(bytes([1]) * 32).decode()}"


@pytest.fixture
def seb(voting):
    return voting


async def cast(made, event_id=FIRST):
    return await made.journal.run(lambda store: votes(store, event_id, 1))


async def test_an_approval_that_is_enough_is_granted(seb, open_polls):
    await announce(open_polls.journal, FIRST, **ALONE)
    code, out, err = await seb("approve", FIRST.lower(), "--reason", "drained")
    assert (code, out, err) == (0, f"{FIRST}  {GRANTED}\n", "")
    assert open_polls.told == [[FIRST]]
    [vote] = await cast(open_polls)
    assert (vote.decision, vote.reason, vote.via) == ("approve", "drained", "control")


async def test_the_vote_is_for_this_vm_and_names_who_is_missing(seb, open_polls):
    await announce(open_polls.journal, FIRST)
    code, out, _ = await seb("approve", FIRST)
    assert (code, out) == (0, f"{FIRST}  recorded for {ME}; still missing: {OTHER}\n")
    assert open_polls.told == []
    code, out, _ = await seb("approve", FIRST, "--resource", OTHER)
    assert (code, out) == (0, f"{FIRST}  {GRANTED}\n")


async def test_a_repeated_vote_gets_the_same_answer(seb, open_polls):
    await announce(open_polls.journal, FIRST)
    said = [await seb("approve", FIRST) for _ in range(2)]
    assert said[0] == said[1]


async def test_a_hold_says_that_azure_has_no_veto(seb, open_polls):
    await announce(open_polls.journal, FIRST, **ALONE)
    code, out, _ = await seb("hold", FIRST)
    assert code == 0
    assert out.startswith(
        f"{FIRST}  recorded; A hold does not stop Azure: the event still starts at "
    )
    assert "Z (in 14m)" in out


async def test_a_hold_on_several_vms_says_that_other_bridges_do_not_know_of_it(seb, open_polls):
    await announce(open_polls.journal, FIRST)
    await announce(open_polls.journal, SECOND, **ALONE)
    _, out, _ = await seb("hold", FIRST)
    assert out.endswith(
        "; other bridges do not know of this hold, and one of them may tell Azure\n"
    )
    _, out, _ = await seb("hold", SECOND)
    assert "other bridges" not in out


async def test_a_hold_by_someone_else_is_named_and_a_release_removes_it(seb, open_polls):
    await announce(open_polls.journal, FIRST)
    await seb("hold", FIRST, "--resource", OTHER)
    await seb("approve", FIRST)
    _, out, _ = await seb("release", FIRST, "--resource", OTHER)
    assert out == f"{FIRST}  recorded for {OTHER}; still missing: {OTHER}\n"
    await seb("hold", FIRST)
    _, out, _ = await seb("approve", FIRST, "--resource", OTHER)
    assert "; held by uid " in out
    assert f"@{ME}\n" in out


async def test_a_release_without_an_approval_says_that_nobody_has_approved(tmp_path, capsys):
    async with polls(tmp_path, require="any") as made:
        await announce(made.journal, FIRST)
        assert await made.run(approve, "release", FIRST) == 0
    assert capsys.readouterr().out == f"{FIRST}  recorded for {ME}; nobody has approved yet\n"


async def test_a_dry_run_says_what_would_happen(tmp_path, capsys):
    async with polls(tmp_path, dry_run=True) as made:
        await announce(made.journal, FIRST, **ALONE)
        assert await made.run(approve, "approve", FIRST) == 0
    sentence = "recorded; dry run: Azure would be notified now, but is not"
    assert capsys.readouterr().out == f"{FIRST}  {sentence}\n"


@pytest.mark.parametrize(("command", "messages"), [("approve", 2), ("hold", 1)])
async def test_several_events_are_one_message_for_each_state_to_approve(
    seb, open_polls, command, messages
):
    await announce(open_polls.journal, FIRST, **ALONE)
    await announce(open_polls.journal, SECOND, **ALONE, description="another state")
    code, out, _ = await seb(command, SECOND, FIRST, SECOND.lower())
    assert code == 0
    assert [line.partition(" ")[0] for line in out.splitlines()] == [SECOND, FIRST]
    votes = [vote for key in (FIRST, SECOND) for vote in await cast(open_polls, key)]
    assert len({vote.approval for vote in votes}) == messages
    told = [key for keys in open_polls.told for key in keys]
    assert sorted(told) == (sorted([FIRST, SECOND]) if command == "approve" else [])


async def test_an_approval_is_about_the_state_that_the_bridge_showed(open_polls, monkeypatch):
    await announce(open_polls.journal, FIRST, **ALONE)
    sent = Voting._send

    async def after_it_got_worse(self, ballot):
        await announce(open_polls.journal, FIRST, **ALONE, event_type="Terminate")
        return await sent(self, ballot)

    monkeypatch.setattr(Voting, "_send", after_it_got_worse)
    assert await open_polls.run(approve, "approve", FIRST) == 1
    assert open_polls.told == []


async def test_all_means_every_event_that_can_be_approved_here(seb, open_polls):
    await announce(open_polls.journal, "OVER", **ALONE)
    await end(open_polls.journal, "OVER")
    await announce(open_polls.journal, "LEFT")
    await announce(open_polls.journal, "LEFT", resources=(OTHER,))
    await announce(open_polls.journal, FIRST, **ALONE)
    await announce(open_polls.journal, SECOND)
    code, out, _ = await seb("approve", "--all")
    assert code == 0
    assert sorted(line.split()[0] for line in out.splitlines()) == [FIRST, SECOND]
    _, out, _ = await seb("hold", "--all", "--resource", OTHER.lower())
    assert out.startswith(SECOND)
    assert out.count("\n") == 1


async def test_all_without_any_event_prints_a_sentence(seb):
    sentence = "No scheduled event can be approved here.\n"
    assert await seb("approve", "--all") == (0, sentence, "")


async def test_a_mistyped_id_is_not_sent_and_the_nearest_is_named(seb, open_polls):
    await announce(open_polls.journal, FIRST, **ALONE)
    code, out, _ = await seb("approve", FIRST.replace("D2CD", "D2DC"), FIRST)
    wrong, right = out.splitlines()
    assert code == 1
    assert wrong.endswith(f"with this id; did you mean {FIRST}?")
    assert (
        "refused (unknown-event): this bridge has not seen a scheduled event with this id" in wrong
    )
    assert right == f"{FIRST}  {GRANTED}"
    _, out, _ = await seb("approve", "nothing\u202e")
    assert out == (
        "nothing\\u202e  refused (unknown-event): this bridge has not seen a scheduled event with this id"
        "; seb events lists the known ones\n"
    )


async def test_what_does_not_count_is_exit_1_with_the_reason(seb, open_polls):
    await announce(open_polls.journal, FIRST)
    await end(open_polls.journal, FIRST)
    code, out, _ = await seb("approve", FIRST)
    assert (code, out) == (1, f"{FIRST}  refused (expired): the scheduled event is over\n")


async def test_a_vote_for_the_whole_event_needs_permission(tmp_path, capsys, seb, open_polls):
    await announce(open_polls.journal, FIRST)
    code, out, _ = await seb("approve", FIRST, "--all-resources")
    assert code == 1
    assert out.endswith("(resource-required): the event has several VMs; name one in resource"
                        " (--resource VM)\n")  # fmt: skip


async def test_the_outcomes_as_json(seb, open_polls):
    await announce(open_polls.journal, FIRST)
    code, out, _ = await seb("approve", FIRST, "nothing", "--json")
    unknown, known = json.loads(out)["outcomes"]
    assert code == 1
    assert (unknown["eventId"], unknown["reason"]) == ("nothing", "unknown-event")
    assert known["approvalId"]
    del known["approvalId"]
    assert known == {
        "eventId": FIRST,
        "decision": "approve",
        "resource": ME,
        "outcome": "recorded",
        "reason": None,
        "detail": None,
        "missing": [OTHER],
        "holds": [],
        "dryRun": False,
        "drill": False,
    }


async def test_a_bridge_that_cannot_accept_votes_says_why(seb, open_polls):
    await announce(open_polls.journal, FIRST, **ALONE)
    open_polls.served.runtime.take_local = None
    assert await seb("approve", FIRST) == (1, "", "seb: The bridge is starting; try again.\n")


TOKENS = [
    {"name": "ops", "token": "ops-secret"},
    {"name": "eyes", "token": "eyes-secret", "scopes": ["read"]},
]


def afar(made, folder):
    """The configuration of a user without a control socket."""
    listen = str(made.served.served.http)
    return write_config(folder / "afar.yaml", state_dir=str(folder / "x"), http={"listen": listen})


async def test_over_http_a_token_says_who_it_is(tmp_path, capsys, monkeypatch):
    async with polls(tmp_path, http={"tokens": TOKENS}) as made:
        await announce(made.journal, FIRST, **ALONE)
        there = ["--url", f"http://{made.served.served.http}"]
        for token, why in (
            (None, "(--token or SEB_TOKEN)"),
            ("eyes-secret", "needs the scope approve"),
        ):
            words = [*there, "--token", token] if token else there
            assert await made.run(approve, "approve", FIRST, *words) == 1
            assert why in capsys.readouterr().err
        monkeypatch.setenv("SEB_TOKEN", "ops-secret")
        assert await made.run(approve, "approve", FIRST, *there) == 0
        assert [vote.approver for vote in await cast(made)] == ["ops"]


@pytest.fixture
def key(tmp_path):
    """A file with the private key of an approver."""
    file = tmp_path / "orders.key"
    file.write_text(f"{PRIVATE}\n")
    return str(file)


@pytest.mark.parametrize("way", ["control socket", "http", "url"])
async def test_a_signature_proves_the_approver_on_every_route(
    tmp_path, capsys, key, way, monkeypatch
):
    monkeypatch.setenv("SEB_TOKEN", "a token that another bridge does not know")
    allow = [ORDERS.entry()]
    async with polls(tmp_path, http={"tokens": TOKENS}, allow=allow) as made:
        await announce(made.journal, FIRST, **ALONE)
        file = made.file if way == "control socket" else afar(made, tmp_path)
        more = []
        if way == "url":
            file = write_config(
                tmp_path / "n.yaml", state_dir=str(tmp_path / "x"), http={"listen": None}
            )
            more = ["--url", f"http://{made.served.served.http}"]
        words = [FIRST, "--sign-with", key, *more]
        assert await made.run(approve, "approve", *words, file=file) == 0, capsys.readouterr()
        [vote] = await cast(made)
        assert (vote.approver, vote.verified) == ("orders", True)
        assert vote.signed_at is not None
    assert capsys.readouterr().out == f"{FIRST}  {GRANTED}\n"


def test_a_signed_vote_is_printed_as_a_line_that_any_topic_can_carry(capsys, key):
    words = ["--sign-with", key, "--print", "--resource", "vm-1", "--reason", "dräined"]
    assert main(["hold", FIRST.lower(), SECOND, *words]) == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), out.isascii(), err) == (1, True, "")
    body, headers = unwrap(out.encode(), [])
    assert verify([ORDERS.key], headers, body)
    said = read(body, headers, signed=True)
    assert [one.event_id for one in said] == [FIRST, SECOND]
    assert {(one.decision, one.resource, one.reason) for one in said} == {
        ("hold", "vm-1", "dräined")
    }


WRONG = {
    "--print without a key": (["--print"], "--print needs --sign-with FILE"),
    "--print and --json": (["--print", "--json"], "--print does not contact a bridge"),
    "--print and a short id": ([FIRST[:8], "--print"], "--print cannot look up 602D9444: give the"),
    "a key on the command line": (["--sign-with", "whsec_c2VjcmV0"], "the name of a file"),
    "no such file": (["--sign-with", "/nowhere/key"], "--sign-with /nowhere/key: No such file"),
    "a long reason": (["--reason", "x" * 513], "reason must be text of at most 512"),
    "a reason with control characters": (["--reason", "a\x1bb"], "printable characters"),
    "an empty id": ([""], "it names no eventId"),
}


@pytest.mark.parametrize(("words", "sentence"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_a_sentence_and_exit_2(capsys, words, sentence):
    assert main(["approve", *([] if words == [""] else [FIRST]), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert "c2VjcmV0" not in err


@pytest.mark.parametrize(
    "url", ["vm-1", "ftp://vm-1", "http://vm-1/?x", "http://u:p@vm-1", "http://[", "http://vm-1:0"]
)
def test_a_url_is_only_the_address_of_a_bridge(capsys, key, url):
    with pytest.raises(SystemExit, match="2"):
        main(["approve", FIRST, "--sign-with", key, "--url", url])
    assert "--url: must look like https://" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [[], [FIRST, "--all"], [FIRST, "--wait", "10"], [FIRST, "--wait", "11m"],
     [FIRST, "--resource", "a", "--all-resources"]],
    ids=" ".join,
)  # fmt: skip
def test_an_unknown_option_is_exit_2(capsys, words):
    with pytest.raises(SystemExit) as left:
        main(["approve", *words])
    assert left.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", ["approve", "hold", "release"])
def test_without_a_bridge_the_sentence_of_all_commands(tmp_path, capsys, command):
    file = write_config(tmp_path / "seb.yaml", state_dir=str(tmp_path), http={"listen": None})
    assert main([command, FIRST, "-c", str(file)]) == 1
    assert capsys.readouterr().err == (
        f"seb: No bridge is running here (no control socket in {tmp_path}).\n"
    )
