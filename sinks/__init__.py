"""Where CloudEvents go: one module for each technology, found by entry point like anyone else's.

A sink sees `bridge.plugins` and nothing else of the bridge, and no other sink.
"""
