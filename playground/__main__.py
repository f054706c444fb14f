"""python -m playground: every command from a shell."""

import sys

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a model may write what a Windows code page lacks: "?" is no error
    try:
        from .cli import main  # seconds in which somebody may change their mind

        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
