"""Drills: a made-up event goes through the real journal, sinks and approvals."""
