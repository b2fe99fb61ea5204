"""The bounded worlds that `make model` explores, and the small one that the tests explore."""

from model.world import SIGNERS, Message, World, scheduled

BOTH = ("vm-0", "vm-1")
REBOOT = scheduled("A", *BOTH)
LISTED = {
    "require": {"approvers": ["orders", "billing"]},
    "allow": [{"approver": "orders"}, {"approver": "billing"}],
}

SMALL = World(
    "small",
    "One bridge, one event. A message comes twice, and the answer to a StartRequest may be lost.",
    ("vm-0",),
    {"A": (scheduled("A", "vm-0"),)},
    (Message("m1", "A", "orders"),),
    moments=(0, 61),
    failures=1,
    repeats=1,
)

TAKEOVER = World(
    "takeover",
    "Two bridges and one event of both VMs. It is approved on a bus. A bridge may crash, and the "
    "second bridge may take over.",
    BOTH,
    {"A": (REBOOT,)},
    (Message("m1", "A", "orders"),),
    moments=(0, 6, 61),
    crashes=1,
    turns="request",
)

HOLDS = World(
    "holds",
    "Two bridges and one event of both VMs. An approval and a hold come by two channels.",
    BOTH,
    {"A": (REBOOT,)},
    (
        Message("m1", "A", "orders"),
        Message("m2", "A", "billing", "hold", channel="radio"),
    ),
    moments=(0, 6),
    turns="request",
)

EACH = World(
    "each VM",
    "Two bridges and one event of both VMs. Each VM is approved: one on a bus, and the second by "
    "its own sink, which only its bridge knows.",
    BOTH,
    {"A": (REBOOT,)},
    (
        Message("m1", "A", "orders", vm="vm-0"),
        Message("m2", "A", "drain", vm="vm-1", channel="local", at="vm-1"),
    ),
    rules=({"require": "each-resource"},),
    moments=(0, 6, 61),
    failures=1,
    turns="request",
)

RELOADS = World(
    "reloads",
    "One bridge with two channels. A reload takes away the right of one approver, and another "
    "starts a dry run. Tasks take turns at each operation of the journal.",
    ("vm-0",),
    {"A": (REBOOT,)},
    (
        Message("m1", "A", "orders"),
        Message("m2", "A", "billing", channel="radio"),
    ),
    rules=(
        LISTED,
        {**LISTED, "allow": [{"approver": "orders"}]},
        {"require": "any", "dry_run": True},
    ),
    moments=(0, 61),
    turns="operation",
)

CRASHES = World(
    "crashes",
    "One bridge that crashes anywhere. An approval and a hold come by two channels, and one of "
    "them again. The answer of Azure may be lost.",
    ("vm-0",),
    {"A": (REBOOT,)},
    (
        Message("m1", "A", "orders"),
        Message("m2", "A", "billing", "hold", channel="radio"),
    ),
    moments=(0, 61),
    crashes=1,
    failures=1,
    repeats=1,
)

WORSE = World(
    "worse",
    "One bridge that may crash anywhere. The event becomes more severe. Approvals name the state "
    "that their sender saw.",
    ("vm-0",),
    {
        "A": (
            scheduled("A", "vm-0"),
            scheduled("A", "vm-0", kind="Redeploy"),
        )
    },
    (
        Message("m1", "A", "orders", names=True),
        Message("m2", "A", "billing", channel="radio", saw=1, names=True),
    ),
    moments=(0, 61),
    crashes=1,
)

SIGNED = World(
    "signed",
    "One bridge that trusts signatures. Somebody forges an approval, an approver changes its mind, "
    "and old messages come again.",
    ("vm-0",),
    {"A": (REBOOT,)},
    (
        Message("m1", "A", "orders", forged=True),
        Message("m2", "A", "billing", signed=True, channel="radio"),
        Message("m3", "A", "billing", "hold", signed=True, channel="lamp"),
    ),
    rules=({"require": "any", "allow": [one.entry() for one in SIGNERS.values()]},),
    moments=(0, 61),
    repeats=1,
)

OUTAGES = World(
    "outages",
    "One bridge. Azure answers a poll and a StartRequest with errors, and may withdraw the event.",
    ("vm-0",),
    {"A": (REBOOT,)},
    (Message("m1", "A", "orders"),),
    moments=(0, 6, 61),
    failures=1,
    outages=1,
    vanishes=True,
)

PAIRS = World(
    "pairs",
    "One bridge and two events, which one StartRequest can name. Azure may withdraw one meanwhile.",
    ("vm-0",),
    {"A": (scheduled("A", "vm-0"),), "B": (scheduled("B", *BOTH),)},
    (Message("m1", "A", "orders"), Message("m2", "B", "orders", channel="radio")),
    moments=(0, 61),
    vanishes=True,
    turns="request",
)

DRILLS = World(
    "drills",
    "One bridge in a drill. The drill and a real event are approved, and a dry run ends.",
    ("vm-0",),
    {"A": (REBOOT,)},
    (Message("m1", "DRILL", "orders"), Message("m2", "A", "orders", channel="radio")),
    rules=({"require": "any", "dry_run": True}, {"require": "any"}),
    moments=(0, 61),
    drill="DRILL",
)

WORLDS = (TAKEOVER, HOLDS, EACH, RELOADS, CRASHES, WORSE, SIGNED, OUTAGES, PAIRS, DRILLS)
