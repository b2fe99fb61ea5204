"""From the journal to one sink: in order, and at least once."""
