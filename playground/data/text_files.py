"""Text from outside: a visitor's upload, or a file. All problems become sentences."""

from __future__ import annotations

from pathlib import Path

from .errors import TextError

MAX_BYTES = 5_000_000


def decode_upload(data: bytes, *, name: str = "the file", max_bytes: int = MAX_BYTES) -> str:
    """The text of an uploaded file: UTF-8, with or without byte-order mark, of at most `max_bytes`."""
    if not data.strip():
        raise TextError(f"{name} is empty: choose a file with at least a page of text")
    if len(data) > max_bytes:
        raise TextError(f"{name} has {len(data) / 1e6:.1f} MB; at most {max_bytes / 1e6:.1f} MB can be used here")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TextError(f"{name} is UTF-{32 if data[2:4] == bytes(2) else 16} text: save it as UTF-8 and try again")
    if b"\0" in data:
        raise TextError(f"{name} is not a text file: it holds binary data")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise TextError(
            f"{name} is not UTF-8 text (byte {problem.start:,} does not fit): save it as UTF-8 and try again"
        ) from problem
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_file(path: str | Path, *, name: str = "", max_bytes: int = MAX_BYTES) -> str:
    """The text of a local file, which sentences call by its path unless it has a `name`."""
    path, name = Path(path), name or str(path)
    if path.is_dir():
        raise TextError(f"{name} is a folder: name a text file")
    if path.exists() and not path.is_file():
        raise TextError(f"{name} is not a file that can be read again: save its text in one")
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise TextError(f"{name} has {size / 1e6:.1f} MB; at most {max_bytes / 1e6:.1f} MB can be used here")
        data = path.read_bytes()
    except OSError as problem:
        raise TextError(f"{name} cannot be read: {problem.strerror or problem}") from problem
    return decode_upload(data, name=name, max_bytes=max_bytes)
