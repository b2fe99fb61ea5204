"""The approval path: message, vote, decision, StartRequest, outcome."""
