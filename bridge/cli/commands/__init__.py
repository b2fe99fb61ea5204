"""The commands of `seb`, one module each: options, a call, and how the result is printed."""
