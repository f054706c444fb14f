"""A job that trains models: the part that runs and comparisons share, from the text to the models in the registry."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from ..data import Baselines
from ..model import ModelConfig, Transformer
from ..storage import Checkpoint
from ..storage.snapshots import find_snapshots
from ..training import History, Started, TrainConfig
from .job import Job
from .limits import Limits
from .models import Registry
from .runs import Laddered, Prepared

logger = logging.getLogger(__name__)


class TrainingJob(Job):
    """One job: its spec, and what is known so far about its text and its training."""

    def __init__(self, job_id: str, visitor: str, name: str, spec: Any, limits: Limits, registry: Registry):
        super().__init__(job_id, visitor, name, limits, registry)
        self.spec = spec
        self._prepared: Prepared | None = None
        self._started: Started | None = None
        self._baselines: Baselines | None = None
        self._notices: list[str] = []

    def seen_as(self) -> dict[str, Any]:
        return super().seen_as() | {
            "corpus": self.spec.source.title,
            "baselines": self._baselines,
            "notices": tuple(self._notices),
            "device": f"{self._started.device}, {self._started.precision}" if self._started else "",
        }

    def put_away(self) -> None:
        for model_id in self.learned:
            self.registry.save(model_id)

    # ---- for its kinds -----------------------------------------------------------------------------------------------

    def _take_ladder(self, event: Laddered) -> None:
        """Take in the baselines, which the job's models remember, too."""
        self._baselines = event.baselines
        for made in filter(None, map(self.registry.here, self.learned)):
            made.about["ladder"] = event.baselines.to_dict()

    def _checkpoint(
        self, model_id: str, model: Transformer, history: History, name: str, training: TrainConfig, **about: Any
    ) -> Checkpoint:
        """One of its models, with its kept moments."""
        about = {
            "corpus": self.spec.source.title,
            "language": self._prepared.language,
            "text_sha256": self._prepared.corpus_sha256,
            "prompt": training.sample_prompt,
            "training": training.to_dict(),
            "ladder": self._baselines.to_dict() if self._baselines else None,
            **about,
        }
        snapshots = find_snapshots(self.registry.data.folder_of(model_id), model.config)
        return Checkpoint(model, self._prepared.tokenizer, history, name, about, snapshots)

    def _put(self, model_id: str, checkpoint: Checkpoint) -> None:
        """Put a model into the registry, where Generate and Inspect find it; it is saved by `put_away`."""
        self.registry.add(self.visitor, checkpoint, model_id=model_id, share=self.share, save=False)
        with self._lock:
            self.models[model_id] = True
            self.emptied = False
            self.version += 1

    def _with_moments(self, config: ModelConfig, most: float = math.inf) -> Any:
        """The spec, with as many kept moments of each model as there is room for."""
        training = self.spec.training
        count = min(training.snapshots or self.limits.snapshots(config), most)
        return replace(self.spec, training=training.replace(snapshots=count))

    def _keep_moment(self, keep: Callable[[], None]) -> None:
        """Save one moment's weights, if there is room."""
        try:
            keep()
        except OSError:
            logger.exception("a snapshot could not be kept")  # the job itself matters more

    # ---- after a restart ---------------------------------------------------------------------------------------------

    def noted(self) -> dict[str, Any]:
        return {
            "spec": asdict(self.spec),
            "prepared": self._prepared.to_dict() if self._prepared else None,
            "baselines": self._baselines.to_dict() if self._baselines else None,
            "notices": self._notices,
            "message": self.message,
        }

    def _find(self, noted: Mapping[str, Any]) -> None:
        """Take in what was noted, and find which of its models are here."""
        self._prepared = Prepared.from_dict(noted["prepared"]) if noted["prepared"] else None
        self._baselines = Baselines.from_dict(noted["baselines"]) if noted["baselines"] else None
        self._notices = list(noted["notices"])
        self.models = {model_id: self.registry.has(model_id, self.visitor) for model_id in self.models}
