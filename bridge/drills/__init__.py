"""Rehearsals: a made-up event through the real journal, sinks and approvals."""
