"""Scenes: what one visitor has on the page at one moment, for the facts of lessons; asked for where one needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...game.rules import Game
from ...inspection import Look
from ...inspection.precision import PrecisionCost
from ...inspection.replay import Appearance, appearance
from ...lessons.progress import Progress
from ...lessons.reading import Lesson, Needed, Step
from ...lessons.scene import NotYet, Scene, Unsettled
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
from ..tabs.inspect.validation import held_out

OWN = "own"
"""In a step's `model`: the newest of the visitor's own."""
PAIRS = ("with", "without")
"""In a step's `model`: the mixture of the pair that this lesson has trained with a balance loss, and without."""
HABIT = "induction"
"""The habit whose appearance a lesson may ask for."""


class Scenes:
    """Makes them; `inputs` are the components whose values they need."""

    def __init__(self, page: Page, controls: Mapping[str, Any]):
        self.page, self.controls = page, controls
        self.looks, self.inspect, self.generate = map(page.shared, ("inspect.looks", "inspect", "generate"))
        self.pair_of, self.moe = page.shared("moe.pair"), page.shared("moe")
        self.inputs = {page.visitor, page.model, self.inspect, self.generate, self.moe, *controls.values()}

    def value(self, name: str, values: dict) -> Any:
        """What stands in a control, or what a panel has selected."""
        tab, _, field = name.partition(".")
        if tab == "generate":
            return getattr(generate.selected(values[self.generate]), field, None)
        if tab != "inspect":
            return values.get(self.controls.get(name))
        return getattr(self.selected(values), field, None)

    def selected(self, values: dict) -> Selection:
        """What Inspect's panel shows."""
        sent = values[self.inspect]
        return Selection.read(sent if isinstance(sent, dict) else {})

    def scene(self, lesson: Lesson, step: Step, progress: Progress, values: dict) -> Scene:
        """What this visitor has at the moment, at a step. Of another model than the step's nothing is said."""
        page, visitor, model = self.page, values[self.page.visitor], values[self.page.model]
        about, seen_at = self.model_of(step, lesson, progress, visitor), self.selected(values)

        def chosen() -> Checkpoint:
            if about not in (None, model):
                raise Unsettled("This step is about another model. Press “Show me where” to choose it.")
            if about is None and "model" in step.sets and page.board.active(visitor) is not None:
                raise Unsettled("Your model is still training. Wait until the run ends.")
            return page.registry.get(model, visitor)

        def look() -> Look:
            chosen()
            if seen_at.model != model:
                raise Unsettled("Open Inspect and wait until it shows this model.")
            return self.looks.look(visitor, model, seen_at.prompt, example=seen_at.subject)

        def value(name: str) -> Any:
            return self.value(name, values)

        def run(name: str) -> tuple[RunView, Checkpoint | None]:
            if name == "chosen":
                checkpoint = chosen()
                job = page.board.find(visitor, model)
                return (job.view() if job else RunView.of_checkpoint(model, checkpoint)), checkpoint
            jobs = self.runs(lesson, name, progress, visitor)
            if not jobs:
                raise NotYet("You have no such model yet. Train it in this lesson first.")
            there = page.registry.has(jobs[-1].id, visitor)  # it has no model before its first evaluation
            return jobs[-1].view(), jobs[-1].checkpoint if there else None

        def balance(kind: str) -> tuple[ModelConfig, History]:
            job = self.pair_job(lesson, progress, visitor, balanced=kind == "with")
            side = job.view().sides.get("moe") if job else None
            if side is None or not side.histories:
                raise NotYet(f"Press “{'Train both' if kind == 'with' else 'Train this pair without balance'}” first.")
            return side.config, side.histories[0]

        def pair() -> PairView:
            job = self.pair_job(lesson, progress, visitor, balanced=True)
            found = job.view() if job else self.pair_of(visitor, values[self.moe], model)
            if found is None:
                raise NotYet("Choose a dense and an MoE model first.")
            return found

        def appeared(look: Look) -> Appearance | None:
            return appearance(replay_of(look), HABIT)

        def game() -> Game:
            chosen()
            found = page.shared("generate.games").seen(visitor, model)
            if found is None:
                raise NotYet("Open the game first.")
            return found

        def precision() -> PrecisionCost:
            found = seen(chosen())
            if found is None:
                raise NotYet("Press “Measure this model in all three” first.")
            return found[0]

        writes = generate.selected(values[self.generate])
        place = tuple(number or 0 for number in (seen_at.layer, seen_at.head, seen_at.query, seen_at.key))
        return Scene(
            run=run,
            checkpoint=chosen,
            look=look,
            place=place,
            edits=lambda: parsed(seen_at.edits),
            held_out=lambda look: held_out(page, look),
            role=lambda look: roles_of(page, look).tests.role(
                min(place[0], look.config.n_layers - 1), min(place[1], look.config.n_heads - 1)
            ),
            appeared=appeared,
            pair=pair,
            balance=balance,
            game=game,
            precision=precision,
            generate_prompt=(writes.prompt or "")[: page.limits.prompt],
            dice="none" if writes.greedy else "kept" if writes.same_again else "thrown",
            lesson_prompt=lesson.prompt,
            visitor=str(visitor or ""),
        )

    def model_of(self, step: Step, lesson: Lesson, progress: Progress, visitor: str) -> str | None:
        """The id of the model that a step is about: of those it names the first that is there; `own` is the visitor's
        newest."""
        named = step.sets.get("model", ())
        for name in [named] if isinstance(named, str) else named:
            if name == OWN:
                entries = [entry for entry in self.page.registry.models(visitor) if not entry.shipped]
                own = [entry.id for entry in entries if self._counts(lesson, entry.id, visitor)]
                if own:
                    return own[0]
                continue
            if name in PAIRS:
                job = self.pair_job(lesson, progress, visitor, balanced=name == "with")
                model_id = job.model_ids["moe"] if job else ""
            else:
                own = self.runs(lesson, name, progress, visitor) if name in (*lesson.runs, "run") else []
                model_id = own[-1].id if own else f"shipped-{name}"
            if self.page.registry.has(model_id, visitor):
                return model_id
        return None

    def _counts(self, lesson: Lesson, model: str, visitor: str) -> bool:
        """Whether a model is one that the lesson means by `own`."""
        needed, job = lesson.runs.get(OWN), self.page.board.find(visitor, model)
        return needed is None or (isinstance(job, RunJob) and _fits(needed, job))

    def runs(self, lesson: Lesson, name: str, progress: Progress, visitor: str) -> list[RunJob]:
        """The visitor's runs that count as the one of this name, the newest last."""
        needed, old = lesson.runs.get(name, Needed()), progress.before.get(lesson.id, ())
        return [
            job
            for job in self.page.board.of(visitor)
            if job.id not in old and job.state != "failed" and _fits(needed, job)
        ]

    def pair_job(self, lesson: Lesson, progress: Progress, visitor: str, *, balanced: bool) -> ComparisonJob | None:
        """The newest comparison of this lesson whose mixture was trained with balance, or without."""
        old = progress.before.get(lesson.id, ())
        jobs = self.page.board.of(visitor, kind=ComparisonJob)
        return next(
            (job for job in reversed(jobs) if job.id not in old and (job.spec.moe.balance != "none") == balanced), None
        )


def _fits(needed: Needed, job: RunJob) -> bool:
    source, causal = job.spec.source, job.spec.model.causal
    return needed.text in ("", source.kind) and needed.holds in source.text and needed.causal == causal


def whole(value: Any) -> int:
    """A number that a page sent; 0 for anything that is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
