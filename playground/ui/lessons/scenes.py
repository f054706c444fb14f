"""Scenes: what one visitor has on the page at one moment, at a step of a lesson, for its facts and for the strip."""

from __future__ import annotations

from typing import Any

from ...game.rules import Game
from ...inspection import Look
from ...inspection.edits import Edit
from ...inspection.precision import PrecisionCost
from ...inspection.replay import Appearance, appearance
from ...lessons.progress import Progress
from ...lessons.reading import Lesson, Needed, Step
from ...lessons.scene import NotYet, Scene
from ...model import ModelConfig
from ...service.comparisons import ComparisonJob
from ...service.precision import seen
from ...service.run_job import RunJob
from ...service.views import PairView, RunView
from ...storage import Checkpoint
from ...training import History
from ..page import Page
from ..tabs import generate
from ..tabs.inspect.moments import replay_of
from ..tabs.inspect.selection import Selection, parsed
from ..tabs.inspect.tested import roles_of
from ..under_way import left

OWN = "own"
"""The run that may be from before the lesson, such as the first model."""
PAIRS = ("with", "without")
"""In a step's `model`: the mixture that this lesson has trained with a balance loss, and the one without."""
HABIT = "induction"
"""The habit whose appearance a lesson may ask for."""


class Here(Scene):
    """A visitor at a step. Facts exist only about the step's own model."""

    def __init__(self, page: Page, lesson: Lesson, step: Step, progress: Progress, values: dict):
        self.page, self.lesson, self.step, self.answer = page, lesson, step, progress.answer(lesson, step)
        self.shown_pair = values[page.shared("moe")]
        self.visitor, self.model = values[page.visitor], values[page.model]
        sent, self.writes = values[page.shared("inspect")], generate.selected(values[page.shared("generate")])
        self.seen_at = Selection.read(sent if isinstance(sent, dict) else {})
        at = (self.seen_at.layer, self.seen_at.head, self.seen_at.query, self.seen_at.key)
        self.place = tuple(number or 0 for number in at)
        self.generate_prompt = (self.writes.prompt or "")[: page.limits.prompt]
        self.dice = "none" if self.writes.greedy else "kept" if self.writes.same_again else "thrown"
        self.lesson_prompt, self.old = lesson.prompt, progress.before.get(lesson.id, [])

    # ---- whom it is about ----------------------------------------------------------------------------------------

    def about(self) -> str | None:
        """The id of the model that the step is about: the first existing one of those that the step names."""
        named = self.step.sets.get("model", ())
        ids = map(self._id_of, [named] if isinstance(named, str) else named)
        return next((model for model in ids if model and self.page.registry.has(model, self.visitor)), None)

    def _id_of(self, name: str) -> str:
        """The id of a named model."""
        if name in PAIRS:
            job = self.pair_job(balanced=name == "with")
            return job.model_ids["moe"] if job else ""
        own = self.runs(name) if name in (*self.lesson.runs, "run") else []
        return own[-1].id if own else f"shipped-{name}"

    def runs(self, name: str) -> list[RunJob]:
        """The visitor's runs that count as the one of this name, the newest last."""
        needed, jobs = self.lesson.runs.get(name, Needed()), self._jobs(RunJob)
        if name == OWN:
            jobs = [job for job in self.page.board.of(self.visitor) if not job.active and job.spec.tokenizer == "char"]
        return [job for job in jobs if job.state != "failed" and _fits(needed, job)]

    def pair_job(self, *, balanced: bool) -> ComparisonJob | None:
        """The newest comparison of this lesson whose mixture was trained with balance, or without."""
        jobs = [job for job in self._jobs(ComparisonJob) if (job.spec.moe.balance != "none") == balanced]
        return jobs[-1] if jobs else None

    def _ended(self, job: ComparisonJob | None) -> ComparisonJob | None:
        """The comparison, if there is one. Raises NotYet while it trains."""
        if job is not None and job.active:
            raise NotYet("Your models are still training. Wait until both are trained.")
        return job

    def awaited(self) -> RunJob | ComparisonJob | None:
        """The training for which the step waits, once it has begun; None if it waits for none."""
        match self.step.doing:
            case "run":
                jobs = self.runs(self.step.done.of)
                return jobs[-1] if jobs else None
            case "pair" | "balance" as kind:
                return self.pair_job(balanced=kind == "pair")
        return None

    def begun(self) -> bool:
        """Whether the training for which the step waits has begun; True if it waits for none."""
        return self.step.doing not in ("run", "pair", "balance") or self.awaited() is not None

    def trains(self) -> str:
        """How long the training for which the step waits still takes, in words; empty if it is not under way."""
        job = self.awaited()
        return f"Training{left(job.view().time_left)}." if job is not None and job.active else ""

    def pair_ids(self) -> str:
        """The ids of the step's pair of models, as Dense vs MoE writes them; empty if this lesson has none."""
        model, pairs = self.about(), [job.model_ids for job in self._jobs(ComparisonJob)]
        return next((f"{pair['dense']} {pair['moe']}" for pair in pairs if pair["moe"] == model), "")

    def _jobs(self, kind: type) -> list[Any]:
        """The jobs that were begun in this lesson."""
        return [job for job in self.page.board.of(self.visitor, kind=kind) if job.id not in self.old]

    # ---- what there is -------------------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        about = self.about()
        if about not in (None, self.model):
            raise NotYet("This step is about another model. Press “Show me where” to choose it.")
        if about is None and "model" in self.step.sets and self.page.board.active(self.visitor) is not None:
            raise NotYet("Your model is still training. Wait until the run ends.")
        return self.page.registry.get(self.model, self.visitor)

    def look(self) -> Look:
        self.checkpoint()
        if self.seen_at.model != self.model:
            raise NotYet("Open Inspect and wait until it shows this model.")
        looks, at = self.page.shared("inspect.looks"), self.seen_at
        return looks.look(self.visitor, self.model, at.prompt, example=at.subject)

    def run(self, name: str) -> tuple[RunView, Checkpoint | None]:
        if name == "chosen":
            checkpoint, job = self.checkpoint(), self.page.board.find(self.visitor, self.model)
            return (job.view() if job else RunView.of_checkpoint(self.model, checkpoint)), checkpoint
        jobs = self.runs(name)
        if not jobs:
            raise NotYet("This step needs a model from an earlier step.")
        if jobs[-1].active:
            raise NotYet("Your model is still training. Wait until the run ends.")
        there = self.page.registry.has(jobs[-1].id, self.visitor)  # it has no model before its first evaluation
        return jobs[-1].view(), jobs[-1].checkpoint if there else None

    def edits(self) -> list[Edit]:
        return parsed(self.seen_at.edits)

    def role(self, look: Look) -> str:
        layer, head, *_ = self.place
        tests = roles_of(self.page, look).tests
        return tests.role(min(layer, look.config.n_layers - 1), min(head, look.config.n_heads - 1))

    def appeared(self, look: Look) -> Appearance | None:
        return appearance(replay_of(look), HABIT)

    def pair(self) -> PairView:
        job = self._ended(self.pair_job(balanced=True))
        found = job.view() if job else self.page.shared("moe.pair")(self.visitor, self.shown_pair, self.model)
        if found is None:
            raise NotYet("Choose a dense and an MoE model first.")
        return found

    def balance(self, kind: str) -> tuple[ModelConfig, History]:
        job = self._ended(self.pair_job(balanced=kind == "with"))
        side = job.view().sides.get("moe") if job else None
        if side is None or not side.histories:
            raise NotYet(f"Press “{'Train both' if kind == 'with' else 'Train this pair without balance'}” first.")
        return side.config, side.histories[0]

    def game(self) -> Game:
        self.checkpoint()
        found = self.page.shared("generate.games").seen(self.visitor, self.model)
        if found is None:
            raise NotYet("Open the game first.")
        return found

    def precision(self) -> PrecisionCost:
        found = seen(self.checkpoint())
        if found is None:
            raise NotYet("Press “Measure this model in all three” first.")
        return found[0]


def _fits(needed: Needed, job: RunJob) -> bool:
    source, causal = job.spec.source, job.spec.model.causal
    return needed.text in ("", source.kind) and needed.holds in source.text and needed.causal == causal


def whole(value: Any) -> int:
    """A number from a page as an integer; 0 if it is not a number."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
