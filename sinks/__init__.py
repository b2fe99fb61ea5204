"""Where CloudEvents go: a module or a package for each technology, found by entry point.

A sink sees `bridge.plugins` and nothing else of the bridge, and no other sink.
"""
