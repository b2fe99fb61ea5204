"""Azure Scheduled Events as CloudEvents, and approvals back: one process for each VM.

A document of the metadata service comes in at one end, CloudEvents leave at the other, and what can
be lost is in the journal first. Everything that decides is pure; everything that waits is thin.

To read it, follow one transition: `model` says what Azure says, as values; `diff` decides what
happened between two documents; `messages` writes the CloudEvents about it. Then the shell around
that: `metadata` asks, `poller` asks again and again, `journal` keeps, `dispatcher` delivers, and
`plugins` is what a sink is. `app` puts the parts together, `cli` has the commands. Beside them
stand `simulator`, the metadata service that nobody has at hand, and `demo`, which shows it all.
"""
