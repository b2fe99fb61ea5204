"""Measure what the bridge costs beside small programs that do the same with raw libraries."""
