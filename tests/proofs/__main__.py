"""Proofs that take minutes: `python -m proofs packages|release|image|chart`."""

import importlib
import sys

PROOFS = ("packages", "release", "image", "chart")

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PROOFS:
        sys.exit(f"usage: python -m proofs {'|'.join(PROOFS)}")
    importlib.import_module(f"proofs.{sys.argv[1]}").main()
