"""Archives: a checkpoint folder as one zip file, and back again, from a zip file that anybody may have made.

Everything is checked before it is written: the table of contents before it is read, names and stated sizes before
anything is inflated, true sizes during inflation. Only a checkpoint's own files come out; nothing ever runs.
"""

from __future__ import annotations

import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ..atomic_files import write_file
from .checkpoint import Checkpoint, write_checkpoint
from .errors import A_PICKLE, PICKLES, CheckpointError
from .json_files import MAX_BYTES

FILES = {**MAX_BYTES, "model.safetensors": None, "README.md": 1_000_000}
"""The files that a checkpoint's archive may hold, with most bytes; None leaves only the archive's own bound."""
OF_TRANSFORMERS = {
    "generation_config.json": 100_000,
    "tokenizer_config.json": 4_000_000,
    "special_tokens_map.json": 100_000,
    "added_tokens.json": 100_000,
    "vocab.json": 16_000_000,
    "merges.txt": 16_000_000,
}
"""Further files, beside the first three above, in a folder that Transformers saved."""
MAX_CONTENTS = 64_000
_CHUNK = 1 << 20
# what zipfile raises for tampered files, such as sizes and places beyond the file
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
_LEFT_BY_SYSTEMS = ("__MACOSX/", ".DS_Store", "Thumbs.db", "desktop.ini")


def pack(checkpoint: Checkpoint, path: str | Path, *, card: str = "") -> Path:
    """Write a checkpoint's folder into a zip file, see `write_checkpoint`."""
    path = Path(path)
    with tempfile.TemporaryDirectory(prefix="playground-pack-", dir=path.parent) as made:
        folder = write_checkpoint(Path(made) / "model", checkpoint, card=card)
        return pack_folder(folder, path, inside=file_name(checkpoint.name))


def pack_folder(folder: Path, path: Path, *, inside: str) -> Path:
    """Write a folder's files into a zip file, in a folder of this name."""

    def fill(partial: Path) -> None:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for file in sorted(p for p in folder.iterdir() if p.is_file()):
                # weights do not compress, it would only take time
                method = zipfile.ZIP_STORED if file.suffix == ".safetensors" else zipfile.ZIP_DEFLATED
                archive.write(file, f"{inside}/{file.name}", compress_type=method)

    return write_file(path, fill)


def unpack(path: str | Path, folder: str | Path, *, max_bytes: int, files: dict[str, int | None] | None = None) -> Path:
    """Inflate a zip's known files into a new folder. Raises CheckpointError for anything that should not be inside.

    Args:
        max_bytes: of all files together, inflated.
        files: name → most bytes (None: `max_bytes`) of each file that may be inside; a checkpoint's files unless given.
    """
    folder, known = Path(folder), FILES if files is None else files
    _check_contents(Path(path))
    try:
        with zipfile.ZipFile(path) as archive:
            found = _checked(archive.infolist(), known, max_bytes)
            folder.mkdir(parents=True)
            for name, entry in found.items():
                _inflate(archive, entry, folder / name)
    except CheckpointError:
        raise
    except _DAMAGE as problem:
        raise CheckpointError("the zip file is damaged: download or make it again") from problem
    return folder


# ---- what may be inside ----------------------------------------------------------------------------------------------


def _check_contents(path: Path) -> None:
    """Check how large the zip's table of contents is, as its last bytes say: the table is read as a whole."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(max(size - 65_600, 0))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise CheckpointError("this is not a zip file: choose one that this project has made")
    contents = struct.unpack("<I", tail[at + 12 : at + 16])[0]
    if contents > MAX_CONTENTS or tail[max(at - 20, 0) : at].startswith(b"PK\x06\x07"):
        raise CheckpointError("the zip file lists far more files than a model has")


def _checked(entries: Iterable[zipfile.ZipInfo], known: dict[str, int | None], max_bytes: int) -> dict:
    """File name → entry. Every name, kind and stated size is checked before anything is inflated."""
    found: dict[str, zipfile.ZipInfo] = {}
    tops, total = set(), 0
    for entry in entries:
        name, shown = entry.filename, _shown(entry.filename)
        parts = PurePosixPath(name).parts
        if not parts or "\\" in name or ":" in name or name.startswith("/") or ".." in parts or "\0" in name:
            raise CheckpointError(f"the zip file names a place outside of itself, {shown}: nothing of it was opened")
        if any(name.startswith(left) or parts[-1] == left for left in _LEFT_BY_SYSTEMS):
            continue
        mode = entry.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise CheckpointError(f"{shown} is a link or a device, not a file: nothing of the zip file was opened")
        if entry.is_dir():
            continue
        if entry.flag_bits & 0x1:
            raise CheckpointError("the zip file is locked by a password: choose one without")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CheckpointError(f"{shown} is packed in an unusual way: use an ordinary zip")
        base = parts[-1]
        if base.lower().endswith(PICKLES):
            raise CheckpointError(f"{_shown(base)} {A_PICKLE}")
        if base not in known or len(parts) > 2:
            raise CheckpointError(f"the zip file holds {shown}, which is no part of a model ({', '.join(known)})")
        if base in found:
            raise CheckpointError(f"the zip file holds {base} twice")
        most = known[base] if known[base] is not None else max_bytes
        if entry.file_size > most:
            raise CheckpointError(f"{base} would have {_mb(entry.file_size)}; at most {_mb(most)} can be opened here")
        total += entry.file_size
        found[base] = entry
        tops.add(parts[:-1])
    if total > max_bytes:
        raise CheckpointError(
            f"the zip file would inflate to {_mb(total)}; at most {_mb(max_bytes)} can be opened here"
        )
    if len(tops) > 1:
        raise CheckpointError("the zip file holds several folders: put one model into it")
    return found


def _inflate(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Write one file, and stop as soon as it is larger than stated."""
    written = 0
    with archive.open(entry) as source, open(target, "xb") as out:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > entry.file_size:
                raise CheckpointError(f"{target.name} is larger than the zip file says: nothing of it is used")
            out.write(chunk)
    if written != entry.file_size:
        raise CheckpointError("the zip file is damaged: download or make it again")


# ---- words -----------------------------------------------------------------------------------------------------------


def file_name(name: str) -> str:
    """A file name that every system accepts, without an ending."""
    plain = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower())
    return "-".join(filter(None, plain.split("-")))[:60] or "model"


def _shown(name: str) -> str:
    cut = "".join(c if c.isprintable() else "?" for c in name[:60])
    return cut + ("…" if len(name) > 60 else "")


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
