"""The groups of figures: one module each, with `async def figures() -> list[Figure]`."""
