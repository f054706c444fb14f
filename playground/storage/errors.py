"""The one error of this package, and what any folder may be refused for before its files are looked at."""

from __future__ import annotations

from pathlib import Path

LONGEST = 1000
"""Characters of a message."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
A_PICKLE = (
    "is a pickle, which can run code when opened, so this program never loads it. Save the weights as safetensors"
)


class CheckpointError(ValueError):
    """What is wrong with a model's files, in a sentence meant to be shown: one line, whatever names the files hold."""

    def __init__(self, sentence: str):
        shown = sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]} …"
        super().__init__("".join(c if c.isprintable() else " " for c in shown))


def check_folder_is_there(folder: Path, what: str) -> None:
    """Raise CheckpointError where this is no folder, which should have been the folder of `what`."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise CheckpointError(f"{folder} {problem}: name the folder of {what}")


def refuse_pickles(folder: Path) -> None:
    """Raise CheckpointError that names a pickle, where a folder holds one."""
    pickled = next((p.name for p in sorted(folder.iterdir()) if p.suffix.lower() in PICKLES), None)
    if pickled:
        raise CheckpointError(f"{pickled} {A_PICKLE}")
