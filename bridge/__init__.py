"""Azure Scheduled Events as CloudEvents, and approvals back: one process for each VM.

A document of the metadata service comes in at one end and CloudEvents leave at the other; approvals
come back the other way. What can be lost is in the journal first. Everything that decides is pure;
everything that waits is thin. Each package here is a room with one purpose.

To read it, follow one transition. `core` says what Azure says as values, decides what happened
between two documents, and writes the CloudEvents about it. `metadata` asks, `source` asks again and
again, `journal` keeps, `delivery` sends to each sink, and `plugins` is what a sink is.

Then follow one approval. `policy` says who may say what, and what is enough. `approvals` takes a
message, makes a vote of it, decides, and tells Azure; `service` there builds the whole path.
`drills` rehearses it.

Around them, `config` reads the file, `runtime` is what all tasks share, `web` serves the API, `app`
starts, reloads and stops it all, and `cli` has the commands. `common` and `platform` know nothing
of the subject. Beside them are `simulator`, the metadata service that nobody has at hand, and
`demo`, which shows everything.
"""
