"""The four errors of a plugin; each tells the bridge what to do, not only what happened."""


class Unavailable(Exception):
    """The receiver cannot accept it now, or may have accepted it: keep it, and try later."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Gone(Unavailable):
    """The receiver wants no more from us: stop the sink until an operator resumes it."""


class Rejected(Exception):
    """The receiver will never accept this CloudEvent: make it a dead letter."""


class Misconfigured(ValueError):
    """The configuration cannot work."""
