"""The four things that a plugin may say went wrong; each is a decision, not a description."""


class Unavailable(Exception):
    """The far side cannot take it now, or we do not know whether it did: keep it, try later."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Gone(Unavailable):
    """The far side wants nothing more from us: stop the sink until somebody changes that."""


class Rejected(Exception):
    """The far side will never take this CloudEvent: set it aside."""


class Misconfigured(ValueError):
    """What is written in the configuration cannot work."""
