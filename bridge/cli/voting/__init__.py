"""What `seb approve`, `hold`, `release` and `events --pending` share."""
