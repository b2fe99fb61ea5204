"""Who may vote on a scheduled event, and how many votes are enough; pure."""
