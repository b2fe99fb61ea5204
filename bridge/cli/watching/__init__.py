"""The live view of `seb watch` on a terminal: its content, the screen, and the loop."""
