"""What several technologies use to verify servers and to prove their own identity."""
