"""Who may say what about a scheduled event, and what is enough; pure."""
