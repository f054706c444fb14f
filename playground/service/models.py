"""Registry: the page's models. Shipped checkpoints belong to everyone, a visitor's models to that visitor alone.

A visitor's model is saved in the data folder and read again on request, also after a restart. If memory gets short,
the least recently used models are unloaded, and only their files remain. If a visitor, or the server, has too many
models, the least recently used are removed; on the server, those of the address with the most go first.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_files import bytes_of
from ..kept import forget
from .data_folder import DataFolder, new_id, tidy_name
from .limits import USED_SECONDS, Limits

if TYPE_CHECKING:
    from ..model import Transformer
    from ..storage import Checkpoint

logger = logging.getLogger(__name__)

SHIPPED_FOLDER = Path(__file__).resolve().parents[2] / "checkpoints"


@dataclass(eq=False)
class Entry:
    """One model that a visitor may choose."""

    id: str
    """`shipped-…`, or an unguessable id."""
    name: str
    """The name shown in lists."""
    owner: str | None
    """The visitor it belongs to; None for shipped ones."""
    folder: Path
    """The folder for its files, which may not exist yet."""
    checkpoint: Checkpoint | None = None
    """None for a model that nobody has opened yet, or that was unloaded."""
    has_experts: bool = False
    """Whether the model is a mixture of experts."""
    share: str = ""
    """The address from which it was made: the one with most models gives way first, see `Board`."""
    made: float = field(default_factory=time.time)
    used: float = field(default_factory=time.time)
    """When the model was last used."""
    disk_bytes: int = 0
    """Bytes of its files."""
    saved: bool = False
    """Whether its files hold all of it."""
    noted: float = 0.0
    """When its last use was last noted in the index."""
    opening: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def bytes(self) -> int:
        """Bytes of its weights in memory; 0 before it is opened."""
        parameters = self.checkpoint.model.parameters() if self.checkpoint else ()
        return sum(parameter.numel() * parameter.element_size() for parameter in parameters)

    @property
    def shipped(self) -> bool:
        """Whether the model ships with the project."""
        return self.owner is None


class Registry:
    """All models, by id. Safe to use from several threads; the models in it never change."""

    def __init__(self, limits: Limits, shipped: Path = SHIPPED_FOLDER, data: DataFolder | None = None):
        self.limits, self.data = limits, data or DataFolder()
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self.on_leaving: Callable[[Entry], None] = lambda entry: self.data.delete(entry.id)
        """Called with a model that was removed for good, to clean up after it."""
        self.on_opening: Callable[[Entry, Transformer], None] = lambda entry, model: None
        """Called when a visitor's model was read from its files."""
        for folder in sorted(config.parent for config in shipped.glob("*/config.json")):
            shipped_id = f"shipped-{folder.name}"
            name = str(_read(folder / "history.json").get("name") or folder.name)
            experts = bool(_read(folder / "config.json").get("n_experts"))
            self._entries[shipped_id] = Entry(shipped_id, name, None, folder, has_experts=experts, saved=True)
        for row in self.data.rows("SELECT * FROM models ORDER BY made"):
            self._entries[row["id"]] = Entry(
                row["id"],
                row["name"],
                row["visitor"],
                self.data.folder_of(row["id"]),
                has_experts=bool(row["experts"]),
                share=row["share"],
                made=row["made"],
                used=row["used"],
                disk_bytes=row["bytes"],
                saved=True,
                noted=row["used"],
            )

    def get(self, model_id: str | None, visitor: str | None) -> Checkpoint:
        """The checkpoint of a model. Raises ValueError if this visitor does not have it.

        A shared id (`DataFolder.shared_id`) gives anybody the model, but not the text that its run learned from.
        """
        entry = self._entry(model_id, visitor)
        entry.used = time.time()
        if not entry.shipped and entry.saved and entry.used - entry.noted > USED_SECONDS:
            entry.noted = entry.used
            self._note(entry)
        with entry.opening:  # other requests for this model wait; no others do
            if entry.checkpoint is None:
                entry.checkpoint = self._opened(entry)
                if not entry.shipped:
                    self.on_opening(entry, entry.checkpoint.model)
            checkpoint = entry.checkpoint
        self._put_down(keep=entry)
        return checkpoint if entry.id == model_id else replace(checkpoint)  # whose text `Board.source_of` knows

    def here(self, model_id: str) -> Checkpoint | None:
        """The model, if it is in memory now."""
        entry = self._entries.get(model_id)
        return entry and entry.checkpoint

    def _opened(self, entry: Entry) -> Checkpoint:
        from ..storage import load
        from ..storage.bounds import check_bounds

        try:
            checkpoint = load(entry.folder, check=lambda config: check_bounds(config, self.limits.parameters))
        except (OSError, ValueError) as problem:
            logger.warning("the model in %s cannot be opened: %s", entry.folder, problem)
            why = "its files cannot be read"
            if isinstance(problem, ValueError):
                why = str(problem).replace(str(entry.folder), "its folder")
            raise ValueError(f"{entry.name}: {why}. Choose another model, or train it again.") from problem
        return checkpoint if entry.shipped else replace(checkpoint, name=entry.name)

    def has(self, model_id: str | None, visitor: str | None) -> bool:
        """Whether `get` would succeed."""
        try:
            self._entry(model_id, visitor)
        except ValueError:
            return False
        return True

    def owns(self, model_id: str | None, visitor: str | None) -> bool:
        """Whether the model is this visitor's own, to be renamed, deleted and shared."""
        entry = self._entries.get(model_id) if isinstance(model_id, str) else None
        return entry is not None and entry.owner is not None and entry.owner == visitor

    def models(self, visitor: str | None) -> list[Entry]:
        """The models that this visitor may choose: first their own, the newest first, then the shipped ones."""
        with self._lock:
            own = [e for e in self._entries.values() if not e.shipped and e.owner == visitor]
            return own[::-1] + [e for e in self._entries.values() if e.shipped]

    def choices(self, visitor: str | None, *, experts: bool | None = None) -> list[tuple[str, str]]:
        """These models as (label, id), for a drop-down; on request only mixtures, or only dense models."""
        found = [e for e in self.models(visitor) if experts in (None, e.has_experts)]
        return [(e.name, e.id) for e in found]

    @property
    def default(self) -> str | None:
        """The id of the model that the page opens with; None if nothing ships."""
        with self._lock:
            ids = [e.id for e in self._entries.values() if e.shipped]
        return "shipped-stories" if "shipped-stories" in ids else next(iter(ids), None)

    def add(
        self, visitor: str, checkpoint: Checkpoint, *, model_id: str | None = None, share: str = "", save: bool = True
    ) -> str:
        """Add a visitor's model (in place of the one with this id, if any) and return its id.

        If the visitor or the server then has too many models, the least recently used ones leave. With `save=False`
        nothing is written until a later call of `save`: for a model that will still change.
        """
        with self._lock:
            model_id = model_id or new_id()
            replaced = self._entries.pop(model_id, None)
            self._entries[model_id] = entry = Entry(
                model_id,
                checkpoint.name,
                visitor,
                self.data.folder_of(model_id),
                checkpoint,
                has_experts=checkpoint.config.n_experts > 0,
                share=share,
                disk_bytes=replaced.disk_bytes if replaced else 0,
            )
            leaving = self._surplus(entry)
            for gone in leaving:
                del self._entries[gone.id]
        for gone in leaving:
            self._leaves(gone)
        if replaced is not None and replaced.checkpoint is not None:
            forget(replaced.checkpoint.model)
        if save:
            self.save(model_id)
        self._put_down(keep=entry)
        return model_id

    def save(self, model_id: str) -> None:
        """Write a visitor's model to the data folder. If that is impossible now, `DataFolder` tries again later."""
        entry = self._entries.get(model_id)
        if entry is not None and not entry.shipped:
            self.data.keep("model", model_id, lambda: self._write(entry))

    def _write(self, entry: Entry) -> None:
        from ..storage import write_checkpoint

        checkpoint = entry.checkpoint
        if self._entries.get(entry.id) is not entry or checkpoint is None:
            return  # removed meanwhile, or saved already
        write_checkpoint(entry.folder, checkpoint)
        entry.disk_bytes = bytes_of(entry.folder)
        values = (entry.id, entry.owner, entry.share, entry.name, entry.has_experts, entry.disk_bytes, entry.made)
        with self.data.store.change() as db:
            db.execute("REPLACE INTO models VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, entry.used))
        entry.saved, entry.noted = entry.checkpoint is checkpoint, entry.used
        if self._entries.get(entry.id) is not entry:
            self.data.delete(entry.id)

    def _note(self, entry: Entry) -> None:
        """Note in the index when a model was used."""
        self.data.change("use", entry.id, ("UPDATE models SET used = ? WHERE id = ?", (entry.used, entry.id)))

    def _surplus(self, newest: Entry) -> list[Entry]:
        """The models to remove for good, now that this one was added."""
        own = [e for e in self._entries.values() if not e.shipped]
        mine = [e for e in own if e.owner == newest.owner]
        leaving = sorted((e for e in mine if e is not newest), key=lambda e: e.used)
        leaving = leaving[: max(len(mine) - self.limits.models_per_visitor, 0)]
        staying = [e for e in own if e not in leaving]
        counts = Counter(e.share for e in staying)
        while len(staying) > self.limits.models or sum(e.disk_bytes for e in staying) > self.limits.disk_bytes:
            others = [e for e in staying if e is not newest]
            if not others:
                break
            gone = max(others, key=lambda e: (counts[e.share], -e.used))
            counts[gone.share] -= 1
            staying.remove(gone)
            leaving.append(gone)
        return leaving

    def _put_down(self, keep: Entry) -> None:
        """Unload saved models' weights if all together take too much memory."""
        with self._lock:
            loaded = sorted((e for e in self._entries.values() if e.checkpoint and not e.shipped), key=lambda e: e.used)
            size = sum(entry.bytes for entry in loaded)
            for entry in loaded:
                if size <= self.limits.model_bytes:
                    break
                if entry is not keep and entry.saved:
                    size -= entry.bytes
                    model, entry.checkpoint = entry.checkpoint.model, None
                    forget(model)

    def forget_unused(self, since: float) -> None:
        """Remove the models that nobody has used since then (in seconds of `time.time`)."""
        with self._lock:
            old = [e for e in self._entries.values() if not e.shipped and e.used < since]
            for entry in old:
                del self._entries[entry.id]
        for entry in old:
            self._leaves(entry)

    def news(self, visitor: str | None) -> tuple:
        """A value that differs whenever this visitor's models have changed; empty if there are none."""
        with self._lock:
            return tuple((e.id, e.name) for e in self._entries.values() if e.owner == visitor)

    def rename(self, model_id: str, visitor: str, name: str) -> str:
        """Rename a visitor's own model; returns the name, tidied. Raises ValueError."""
        name = tidy_name(name)
        with self._lock:
            entry = self._entry(model_id, visitor)
            if not self.owns(model_id, visitor):
                raise ValueError("This model keeps its name; only your own runs can be renamed.")
            entry.name = name
            if entry.checkpoint is not None:
                entry.checkpoint = replace(entry.checkpoint, name=name)
        return self.data.rename(model_id, name)

    def counts(self) -> dict[str, int]:
        """How many models there are, the bytes of those in memory, and the bytes of visitors' model files."""
        with self._lock:
            entries = list(self._entries.values())
        return {
            "of_visitors": sum(not entry.shipped for entry in entries),
            "bytes": sum(entry.bytes for entry in entries),
            "disk_bytes": sum(entry.disk_bytes for entry in entries),
        }

    def remove(self, model_id: str, visitor: str) -> None:
        """Delete a visitor's own model."""
        with self._lock:
            entry = self._entry(model_id, visitor)
            if not self.owns(model_id, visitor):
                raise ValueError("This model stays; only your own runs can be removed.")
            del self._entries[model_id]
        self._leaves(entry)

    def forget_visitor(self, visitor: str) -> None:
        """Remove all of a visitor's models."""
        for entry in self.models(visitor):
            if not entry.shipped:
                self.remove(entry.id, visitor)

    def _leaves(self, entry: Entry) -> None:
        """Clean up after a model, and drop results computed from it."""
        self.on_leaving(entry)
        if entry.checkpoint is not None:
            forget(entry.checkpoint.model)

    def _entry(self, model_id: str | None, visitor: str | None) -> Entry:
        shared = self.data.unshared_id(model_id) if isinstance(model_id, str) else ""
        with self._lock:
            entry = self._entries.get(shared or model_id) if isinstance(model_id, str) else None
            if entry is None or not (shared or entry.shipped or entry.owner == visitor):
                raise ValueError(
                    "This model is no longer here: it was deleted, or newer runs took its place. "
                    "Choose another one, or train it again."
                    if model_id
                    else "No model is chosen: train one, or choose one at the top of the page."
                )
            return entry


def _read(file: Path) -> dict[str, Any]:
    """The JSON in a checkpoint's file, without reading the weights; empty if there is no such file."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
