"""Helpers that every package may use; they know nothing about scheduled events."""
