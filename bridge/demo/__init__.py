"""The whole loop on one machine: `seb demo`."""
