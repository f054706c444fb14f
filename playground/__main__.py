"""python -m playground: train, generate and info from a shell."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
