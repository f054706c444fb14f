"""Views: what a page shows of a run, or of two models side by side, at one moment, each with its version."""

from __future__ import annotations

import statistics
import weakref
from dataclasses import dataclass, field, replace

import torch

from ..data import Baselines, Tokenizer, corpus_from_language
from ..data.judging import LearnedText
from ..links import RunCard
from ..model import ModelConfig
from ..model.matched_pair import MatchedPair
from ..storage import Checkpoint
from ..training import History, Stepped
from ..training.comparison import SIDES
from ..training.losses import window_losses
from ..training.states import State, state_of
from ..training.verdict import Verdict, judge
from ..words.training import ended
from .job import ACTIVE
from .verdicts import learned_by


@dataclass(frozen=True)
class View:
    """What a page shows of any job, at one moment."""

    id: str
    name: str
    state: str
    """waiting, preparing, training, stopping, finished (done, stopped or out of time), failed; or recorded."""
    message: str = ""
    """The latest message, as a sentence."""
    time_left: float | None = None
    """Seconds; None before that can be estimated."""
    place: int | None = None
    """Place in the queue, from 1; None for a job that does not wait."""
    wait: float | None = None
    """Seconds until there should be a place for it."""
    version: int = 0
    """Grows whenever anything changed."""
    done: float = 0.0
    """The share of the job that is done, 0 … 1, if that is counted; of a run: of the measurements after its steps."""
    busy: bool = False
    """Whether its thread still works; after the end, to judge and save its results."""
    corpus: str = ""
    """The name of its text."""
    baselines: Baselines | None = None
    """The baselines on the windows used for its losses, once they are known."""
    notices: tuple[str, ...] = ()
    device: str = ""

    @property
    def active(self) -> bool:
        """Whether it is still going on."""
        return self.state in ACTIVE


@dataclass(frozen=True)
class RunView(View):
    """What a page shows of a run. For a recorded run, only what its checkpoint remembers."""

    history: History = field(default_factory=History)
    planned_steps: int | None = None
    latest: Stepped | None = None
    config: ModelConfig | None = None
    tokenizer: Tokenizer | None = None
    paired: bool = False
    """Whether a comparison trained it, as one of two."""
    corpus_key: str = ""
    """Equal for runs whose losses may be compared: same text, same tokens."""
    prompt: str = ""
    sample_temperature: float | None = None
    """The temperature of its samples; None if that is unknown, or was changed during the run."""
    language: str = ""
    """The language whose grammar judges its texts; empty if there is none."""
    learned_text: LearnedText | None = None
    """The text it learned from, if known, with which its texts are compared instead."""
    before: torch.Tensor | None = None
    """(V,) next-token probabilities after the prompt, before training."""
    now: torch.Tensor | None = None
    """(V,) the same now."""
    settings: dict = field(default_factory=dict)
    """Flat settings, for tables of differences."""
    can_resume: bool = False
    repeats: RunCard | None = None
    """The card of the run that this one was started to repeat."""
    lengthened: bool = False
    """Whether it was trained on after its last step, so that its settings alone do not lead to its losses."""
    kept: int | None = None
    """A step whose weights are better than the model's and can be used instead."""
    used: int | None = None
    """The step whose weights are the model, if it is not the last."""
    tuning: dict | None = None
    """For a model that was trained further: what was measured before and after, see `runs.Tuned`."""

    @property
    def of_model(self) -> History:
        """The history up to the step whose weights are the model."""
        return self.history if self.used is None else self.history.until(self.used)

    @property
    def standing(self) -> State:
        """What the run's losses say about it."""
        return self._state_of(self.history)

    @property
    def standing_of_model(self) -> State:
        """What the losses up to the model's step say about the model."""
        return self._state_of(self.of_model)

    def _state_of(self, history: History) -> State:
        causal = self.config is None or self.config.causal
        return state_of(history, causal=causal, baselines=self.baselines)

    @property
    def can_return(self) -> bool:
        """Whether the last weights, once others were used, can be the model again: those of a diverged run are lost."""
        return self.can_resume and (self.history.finished or {}).get("reason") != "diverged"

    @property
    def learned(self) -> bool:
        """Whether there is a model to use."""
        return self.state in ("finished", "recorded")

    @property
    def from_before(self) -> bool:
        """Whether its run is a record, and not one of this place's comparisons."""
        return self.state == "recorded" and not self.paired

    def asked(self, prompt: str, now: torch.Tensor) -> RunView:
        """The view with next-token probabilities (V,) after another prompt."""
        return replace(self, prompt=prompt, now=now, before=None)

    @classmethod
    def of_checkpoint(cls, model_id: str, checkpoint: Checkpoint) -> RunView:
        """The view of a checkpoint's recorded run."""
        about, history = checkpoint.about, checkpoint.history
        training, tuning = checkpoint.training, about.get("tuning") or {}
        return cls(
            id=model_id,
            name=checkpoint.name,
            state="recorded",
            message=ended(history.finished or {}),
            history=history,
            planned_steps=training.steps if training else history.last_step or None,
            baselines=checkpoint.baselines,
            config=checkpoint.config,
            tokenizer=checkpoint.tokenizer,
            corpus=str(about.get("corpus") or ""),
            paired="comparison" in about,
            prompt=str(about.get("prompt") or ""),
            sample_temperature=sample_temperature(history, training.sample_temperature) if training else None,
            language=str(about.get("language") or ""),
            learned_text=learned_by(checkpoint.model),
            tuning=tuning if "after" in tuning else None,
        )


def sample_temperature(history: History, last: float) -> float | None:
    """The temperature of a run's samples, given the settings' `last` one; None if there were several."""
    return None if any("sample_temperature" in record["settings"] for record in history.changes) else last


# ---- two side by side ------------------------------------------------------------------------------------------------

NAMES = {"dense": "Dense", "moe": "MoE"}
EQUAL_WORDS = {
    "active": "equal active parameters",
    "total": "equal parameters in all",
    "flops": "equal FLOPs",
}
WINDOWS = 256
"""How many validation windows are used to judge the recorded pair."""
TEXT = 200_000
"""Characters of the validation text from which these windows come."""


@dataclass(frozen=True)
class SideView:
    """One of the two models, at one moment."""

    config: ModelConfig
    histories: tuple[History, ...]
    """One history per seed begun, in order; the first belongs to the kept model."""
    planned_steps: int
    reasons: tuple[str, ...] = ()
    """Why each ended run ended, by seed."""

    @property
    def val_losses(self) -> list[float]:
        """The last validation loss of each seed that has one."""
        return [h.val_loss for h in self.histories if h.val_loss is not None]


@dataclass(frozen=True)
class PairView(View):
    """What a page shows of two models side by side."""

    sides: dict[str, SideView] = field(default_factory=dict)
    """dense and moe; empty while the text is being read."""
    seeds: int = 1
    """How many pairs were requested."""
    equal: str | None = None
    """What was made equal; None if nothing was."""
    matched: MatchedPair | None = None
    verdict: Verdict | None = None
    withheld: str = ""
    """Why there is no verdict, or not on all seeds, as a sentence."""

    @property
    def share_done(self) -> float:
        """The share done, 0 … 1, over all seeds and both sides."""
        if not self.sides:
            return 0.0
        done = sum(h.last_step / max(s.planned_steps, 1) for s in self.sides.values() for h in s.histories)
        return min(done / (len(SIDES) * max(self.seeds, 1)), 1.0)

    @property
    def speeds(self) -> dict[str, float | None]:
        """Tokens per second of each side, recorded while both trained in turns: a median of the first seed's steps."""
        first = {side: [h.steps["tokens_per_second"] for h in of.histories[:1]] for side, of in self.sides.items()}
        return {side: statistics.median(*speeds) if any(speeds) else None for side, speeds in first.items()}


# ---- the recorded pair -----------------------------------------------------------------------------------------------


def pair_of(dense_id: str, dense: Checkpoint, moe_id: str, moe: Checkpoint, *, judged: bool = True) -> PairView:
    """Two recorded models that learned one language from the same windows, judged on fresh text.

    `judged`: False leaves them unjudged, since that takes a moment, unless it was done before.
    """
    known = _verdicts.setdefault(moe.model, weakref.WeakKeyDictionary())
    if judged and dense.model not in known:
        known[dense.model] = _judged(dense, moe)
    return PairView(
        id=f"{dense_id} {moe_id}",
        name=f"{dense.name} and {moe.name}",
        state="recorded",
        sides={"dense": _side(dense), "moe": _side(moe)},
        equal="active",
        baselines=moe.baselines,
        verdict=known.get(dense.model),
        corpus=str(moe.about.get("corpus") or ""),
    )


# verdicts on two models, kept while both exist: judging takes a moment, and the result does not change
_verdicts: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _side(checkpoint: Checkpoint) -> SideView:
    return SideView(
        config=checkpoint.config,
        histories=(checkpoint.history,),
        planned_steps=checkpoint.history.last_step,
        reasons=("done",),
    )


def _judged(dense: Checkpoint, moe: Checkpoint) -> Verdict:
    language, unit = str(moe.about["language"]), moe.tokenizer.kind
    corpus = corpus_from_language(language, n_characters=1000, n_validation=TEXT, unit=unit)
    windows = corpus.windows("val", moe.config.context_length, WINDOWS)
    return judge([window_losses(dense.model, *windows)], [window_losses(moe.model, *windows)])
