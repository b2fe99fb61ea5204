"""Traces for OpenTelemetry: from a poll to each delivery, and from a vote to the StartRequest."""
