"""Who may call the API: tokens, client certificates, and the checks in front of each request."""
