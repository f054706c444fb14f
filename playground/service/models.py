"""Registry: the models of the page. Shipped checkpoints belong to everyone, a visitor's runs to that visitor alone."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..service.kept import forget
from .limits import Limits

if TYPE_CHECKING:
    from ..storage import Checkpoint

SHIPPED_FOLDER = Path(__file__).resolve().parents[2] / "checkpoints"
ID_BYTES = 18
NAME_CHARACTERS = 60
DEPARTED_NAMES, DEPARTED_VISITORS = 6, 1000
"""So many names of models that were pushed out are told to each of so many visitors."""


def new_id() -> str:
    """An id that cannot be guessed: of a visitor, of a run."""
    return secrets.token_urlsafe(ID_BYTES)


@dataclass
class Entry:
    """One model that a visitor may choose."""

    id: str
    """`shipped-…` or an unguessable id."""
    name: str
    """As shown in lists."""
    owner: str | None
    """The visitor it belongs to; None for shipped ones."""
    checkpoint: Checkpoint | None = None
    """None for a shipped one that nobody has opened yet."""
    folder: Path | None = None
    """Where a shipped one lies."""
    has_experts: bool = False
    """Whether it is a mixture of experts."""
    used: float = field(default_factory=time.monotonic)
    """When it was last asked for."""
    on_leaving: Callable[[], None] | None = None
    """Called when it leaves the registry, to clean up after it."""

    @property
    def bytes(self) -> int:
        """Of its weights; none before it is opened."""
        parameters = self.checkpoint.model.parameters() if self.checkpoint else ()
        return sum(parameter.numel() * parameter.element_size() for parameter in parameters)

    @property
    def shipped(self) -> bool:
        """Whether it came with the project."""
        return self.owner is None


class Registry:
    """All models, by id. Threads may use it at the same time; the models themselves are never changed once in it."""

    def __init__(self, limits: Limits, shipped: Path = SHIPPED_FOLDER):
        self.limits = limits
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._departed: dict[str, tuple[str, ...]] = {}  # visitor → names of what was pushed out
        for folder in _checkpoint_folders(shipped):
            experts = _shipped_experts(folder)
            entry = Entry(f"shipped-{folder.name}", _shipped_name(folder), None, folder=folder, has_experts=experts)
            self._entries[entry.id] = entry

    def get(self, model_id: str | None, visitor: str | None) -> Checkpoint:
        """The model, its tokenizer, its history. Raises ValueError for what this visitor does not have."""
        from ..storage import load
        from ..storage.bounds import check_bounds

        with self._lock:
            entry = self._entry(model_id, visitor)
            entry.used = time.monotonic()
            if entry.checkpoint is None:
                entry.checkpoint = load(entry.folder, check=lambda c: check_bounds(c, self.limits.parameters))
            return entry.checkpoint

    def has(self, model_id: str | None, visitor: str | None) -> bool:
        """Whether `get` would succeed."""
        try:
            self._entry(model_id, visitor)
        except ValueError:
            return False
        return True

    def models(self, visitor: str | None) -> list[Entry]:
        """What this visitor may choose: own runs, the newest first, then the shipped ones."""
        with self._lock:
            own = [e for e in self._entries.values() if not e.shipped and e.owner == visitor]
            return own[::-1] + [e for e in self._entries.values() if e.shipped]

    def choices(self, visitor: str | None, *, experts: bool | None = None) -> list[tuple[str, str]]:
        """The same as (label, id), for a drop-down; only mixtures, or only those that are none, where that is said."""
        found = [e for e in self.models(visitor) if experts in (None, e.has_experts)]
        return [(f"{e.name} · shipped" if e.shipped else e.name, e.id) for e in found]

    @property
    def default(self) -> str | None:
        """The id of the model that the page opens with; None if nothing ships."""
        with self._lock:
            ids = [e.id for e in self._entries.values() if e.shipped]
        return "shipped-stories" if "shipped-stories" in ids else next(iter(ids), None)

    def add(
        self,
        visitor: str,
        checkpoint: Checkpoint,
        *,
        model_id: str | None = None,
        on_leaving: Callable[[], None] | None = None,
    ) -> str:
        """Take in a visitor's model (in place of the one with this id, if there is one) and return its id.

        Where the visitor or the house then has too many, the least recently used leave.
        """
        with self._lock:
            model_id = model_id or new_id()
            replaced = self._entries.pop(model_id, None)
            self._entries[model_id] = Entry(
                model_id,
                checkpoint.name,
                visitor,
                checkpoint,
                has_experts=checkpoint.config.n_experts > 0,
                on_leaving=on_leaving,
            )
            mine = [e for e in self._entries.values() if e.owner == visitor]
            everyones = [e for e in self._entries.values() if not e.shipped]
            leaving = _least_used(mine, self.limits.models_per_visitor, keep=model_id)
            leaving |= _least_used(everyones, self.limits.models, keep=model_id)
            leaving |= _too_much([e for e in everyones if e.id not in leaving], self.limits.model_bytes, keep=model_id)
            gone = [self._entries.pop(i) for i in leaving]
            for entry in gone:
                self._note_leaving(entry)
        for entry in gone:
            _leaves(entry)
        if replaced is not None:
            forget(replaced.checkpoint.model)
        return model_id

    def departed(self, visitor: str | None) -> list[str]:
        """Names of this visitor's models that had to make room for newer ones, the latest last."""
        with self._lock:
            return list(self._departed.get(visitor, ())) if isinstance(visitor, str) else []

    def news(self, visitor: str | None) -> tuple:
        """Something that is another one whenever this visitor's models have changed; empty where there is none."""
        with self._lock:
            own = [(e.id, e.name) for e in self._entries.values() if e.owner == visitor]
            return *own, *self.departed(visitor)

    def rename(self, model_id: str, visitor: str, name: str) -> Checkpoint:
        """Call a visitor's own model something else; the checkpoint with its new name. Raises ValueError."""
        name = " ".join(name.split()) if isinstance(name, str) else ""
        if not 1 <= len(name) <= NAME_CHARACTERS:
            raise ValueError(f"A name has from 1 to {NAME_CHARACTERS} characters.")
        with self._lock:
            entry = self._entry(model_id, visitor)
            if entry.shipped:
                raise ValueError("A shipped model keeps its name; only your own runs can be renamed.")
            entry.name, entry.checkpoint = name, replace(entry.checkpoint, name=name)
            return entry.checkpoint

    def counts(self) -> dict[str, int]:
        """How many models there are, and the bytes of those that are in memory."""
        with self._lock:
            entries = list(self._entries.values())
        return {
            "shipped": sum(entry.shipped for entry in entries),
            "of_visitors": sum(not entry.shipped for entry in entries),
            "bytes": sum(entry.bytes for entry in entries),
        }

    def remove(self, model_id: str, visitor: str) -> None:
        """Let go of a visitor's own model."""
        with self._lock:
            entry = self._entry(model_id, visitor)
            if entry.shipped:
                raise ValueError("A shipped model stays; only your own runs can be removed.")
            del self._entries[model_id]
        _leaves(entry)

    def _note_leaving(self, entry: Entry) -> None:
        names = self._departed.pop(entry.owner, ())
        self._departed[entry.owner] = (*names, entry.name)[-DEPARTED_NAMES:]
        while len(self._departed) > DEPARTED_VISITORS:
            self._departed.pop(next(iter(self._departed)))

    def _entry(self, model_id: str | None, visitor: str | None) -> Entry:
        with self._lock:
            entry = self._entries.get(model_id) if isinstance(model_id, str) else None
            if entry is None or not (entry.shipped or entry.owner == visitor):
                raise ValueError(
                    "This model is no longer here: the server was restarted, or newer runs took its place. "
                    "Choose another one, or train it again."
                    if model_id
                    else "No model is chosen: train one, or choose one at the top of the page."
                )
            return entry


def _leaves(entry: Entry) -> None:
    """Clean up after a model, and let go of what was worked out from it."""
    if entry.on_leaving:
        entry.on_leaving()
    if entry.checkpoint is not None:
        forget(entry.checkpoint.model)


def _least_used(entries: list[Entry], most: int, keep: str) -> set[str]:
    order = sorted((e for e in entries if e.id != keep), key=lambda e: e.used)
    return {e.id for e in order[: max(len(entries) - most, 0)]}


def _too_much(entries: list[Entry], most: int, keep: str) -> set[str]:
    size = sum(e.bytes for e in entries)
    leaving = set()
    for entry in sorted((e for e in entries if e.id != keep), key=lambda e: e.used):
        if size <= most:
            break
        leaving.add(entry.id)
        size -= entry.bytes
    return leaving


def _checkpoint_folders(root: Path) -> list[Path]:
    return sorted(p.parent for p in root.glob("*/config.json")) if root.is_dir() else []


def _shipped_name(folder: Path) -> str:
    """The name in the checkpoint's record, without reading its weights."""
    try:
        record: Any = json.loads((folder / "history.json").read_text(encoding="utf-8"))
        return str(record["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder.name


def _shipped_experts(folder: Path) -> bool:
    """Whether the checkpoint's config has experts, without reading its weights."""
    try:
        return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["n_experts"]) > 0
    except (OSError, ValueError, KeyError, TypeError):
        return False
