"""Formats: pure encoders that write a CloudEvent as another product expects it."""
