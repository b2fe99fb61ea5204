"""What several technologies need to know whom they talk to, and to prove who they are."""
