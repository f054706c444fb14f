"""python -m playground: every command from a shell."""

import sys

from .cli import main

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a model may write what a Windows code page lacks: "?" is no error
    sys.exit(main())
