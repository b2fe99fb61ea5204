"""What a fault raises that cannot be played here."""


class Skipped(Exception):
    """Why this machine cannot play a fault."""
