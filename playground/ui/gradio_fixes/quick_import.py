"""Gradio writes type stubs beside its sources at every start (6.31): `import_gradio()` imports it without."""

from __future__ import annotations

import inspect


def import_gradio() -> None:
    """Import gradio in half the time. Does nothing more where it is imported already.

    While its component classes are made, gradio parses its own sources to keep .pyi files for editors up to date: three
    seconds on a slow processor, for nothing that runs. It leaves out classes whose file cannot be found, so for the
    length of the import its own cannot.
    """
    find = inspect.getfile

    def find_others(subject: object) -> str:
        if isinstance(subject, type) and subject.__module__.startswith("gradio."):
            raise OSError("not while gradio is imported")
        return find(subject)

    inspect.getfile = find_others
    try:
        import gradio  # noqa: F401
    finally:
        inspect.getfile = find
