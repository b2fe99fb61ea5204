"""Azure Scheduled Events as CloudEvents, and approvals back: one process for each VM.

The bridge reads documents of the metadata service and publishes CloudEvents; approvals come back
the other way. Everything that can be lost is in the journal first. Code that decides is pure; code
that waits is thin. Each package here is a room with one purpose.

To read the code, follow one transition. `core` has Azure's documents as values, decides what
happened between two of them, and writes the CloudEvents about it. `metadata` sends one request,
`source` polls, `journal` records, `delivery` sends to each sink, and `plugins` defines what a sink
is.

Then follow one approval. `policy` defines who may vote, and which votes are enough. `approvals`
turns a message into a vote, decides, and tells Azure; `approvals.service` builds the whole path.
`drills` rehearses it.

Around them, `config` reads the file, `runtime` is what all tasks share, `web` serves the API,
`app` starts, reloads and stops everything, and `cli` has the commands. `common` and `platform`
know nothing about scheduled events. `simulator` is a metadata service for your own machine, and
`demo` shows the whole loop.
"""
