"""python -m playground: every command from a shell."""

import sys

from .starting import ended_by_an_interrupt

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a model may write what a Windows code page lacks: print "?" instead
    with ended_by_an_interrupt():
        import torch  # noqa: F401 (the second that takes long)

        from .cli import main
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
