"""`python -m bridge.cli`: the commands, where no `seb` is on the path."""

import sys

from bridge.cli import main

if __name__ == "__main__":
    sys.exit(main())
