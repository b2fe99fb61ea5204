import pytest

from bridge.cli.parser import Parser, command_first, nearest

NAMES = {"run", "check", "events", "dead-letters"}


@pytest.mark.parametrize(
    ("words", "ordered"),
    [
        ("run --once", "run --once"),
        ("--once run", "run --once"),
        ("-c FILE events --json ID", "events --json ID -c FILE"),
        ("-c events check", "check -c events"),
        ("--sink bus dead-letters list", "dead-letters list --sink bus"),
        ("--json events -- -odd", "events --json -- -odd"),
        ("--help run", "--help run"),
        ("rnu --once", "rnu --once"),
        ("--once rnu", "rnu --once"),
        ("--json", "--json"),
        ("", ""),
    ],
)
def test_options_before_a_command_move_behind_it(words, ordered):
    assert command_first(words.split(), NAMES) == ordered.split()


@pytest.fixture
def parser():
    made = Parser(prog="seb")
    acts = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    letters = acts.add_parser("dead-letters").add_subparsers(dest="act", required=True)
    drop = letters.add_parser("drop")
    drop.add_argument("ids", nargs="+")
    drop.add_argument("--yes", action="store_true")
    acts.add_parser("run").add_argument("--once", action="store_true")
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rnu", "unknown command 'rnu'; did you mean run? See seb --help."),
        ("xyzzy", "unknown command 'xyzzy'. See seb --help."),
        ("run --onc", "unknown option '--onc'; did you mean --once? See seb run --help."),
        (
            "run --once=1 more",
            "argument --once: ignored explicit argument '1'. See seb run --help.",
        ),
        ("run more", "unexpected argument 'more'. See seb run --help."),
        (
            "dead-letters dorp x",
            "unknown command 'dorp'; did you mean drop? See seb dead-letters --help.",
        ),
        (
            "dead-letters drop --yse",
            "unknown option '--yse'; did you mean --yes? See seb dead-letters drop --help.",
        ),
    ],
)
def test_a_wrong_word_is_refused_in_one_sentence(parser, capsys, words, said):
    with pytest.raises(SystemExit) as left:
        parser.parse_args(words.split())
    assert (left.value.code, capsys.readouterr()) == (2, ("", f"seb: {said}\n"))


def test_options_stand_between_a_command_and_what_is_below_it(parser):
    args = parser.parse_args(["dead-letters", "--yes", "drop", "bus:1"])
    assert (args.act, args.ids, args.yes) == ("drop", ["bus:1"], True)
    args = parser.parse_args(["dead-letters", "drop", "--", "--odd"])
    assert args.ids == ["--odd"]


def test_the_nearest_word_is_found_in_any_case():
    assert nearest("ORDERS-BSU", ["pager", "orders-bus"]) == "orders-bus"
    assert nearest("siem", ["pager"]) is None
