"""Formats: pure encoders that say a CloudEvent in the words of another world."""
