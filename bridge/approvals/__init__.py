"""From a message to a vote, to a decision, to a StartRequest, to an outcome."""
