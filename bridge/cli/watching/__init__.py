"""What `seb watch` shows: the stream of CloudEvents, and the live view on a terminal."""
