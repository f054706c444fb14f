"""The one error of this package, and checks that refuse a folder before its files are read."""

from __future__ import annotations

from pathlib import Path

LONGEST = 1000
"""Most characters in a message."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
A_PICKLE = (
    "is a pickle, which can run code when opened, so this program never loads it. Save the weights as safetensors"
)


class CheckpointError(ValueError):
    """What is wrong with a model's files, as a sentence to show: always one line, whatever names the files hold."""

    def __init__(self, sentence: str):
        shown = sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]} …"
        super().__init__("".join(c if c.isprintable() else " " for c in shown))


def check_folder_is_there(folder: Path, what: str) -> None:
    """Raise CheckpointError if the folder of `what` does not exist."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise CheckpointError(f"{folder} {problem}: name the folder of {what}")


def refuse_pickles(folder: Path) -> None:
    """Raise a CheckpointError that names the pickle, if a folder holds one."""
    pickled = next((p.name for p in sorted(folder.iterdir()) if p.suffix.lower() in PICKLES), None)
    if pickled:
        raise CheckpointError(f"{pickled} {A_PICKLE}")
