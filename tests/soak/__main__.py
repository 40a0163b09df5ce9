"""`make soak`: see `tests.soak.campaigns`."""

import sys

from tests.soak.campaigns import main

if __name__ == "__main__":  # not in the processes that it starts
    sys.exit(main(sys.argv[1:]))
