"""The commands of `seb`, one module each: options, a request, and the printed result."""
