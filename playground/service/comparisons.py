"""Comparisons: a dense model and a mixture trained side by side, as a job that a visitor can leave and find again.

`run_comparison` is the iterator, `ComparisonJob` its thread; a page shows it as a `views.PairView`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import TypeAdapter

from ..model import ModelConfig
from ..model.matched_pair import MatchedPair, match_dense, match_experts
from ..processes import threads_for
from ..storage.snapshots import keep_snapshot
from ..training import Finished, History, Noticed, Snapshotted, Started, TrainConfig
from ..training.comparison import SIDES, PairPlan, PairsJudged, SideEvent, Trained, compare
from ..training.verdict import Verdict
from ..words.training import message
from .data_folder import new_id
from .limits import Limits
from .models import Registry
from .runs import Background, Laddered, Prepared, Source, corpus_for, laddered
from .training_job import TrainingJob
from .views import NAMES, PairView, SideView


@dataclass(frozen=True)
class ComparisonSpec:
    """A requested comparison."""

    source: Source
    dense: ModelConfig
    """The dense model; its feed-forward width is set by `matched`, if that is what adapts."""
    moe: ModelConfig
    """The mixture; its experts' width is set by `matched`, if that is what adapts."""
    training: TrainConfig
    equal: str = "active"
    """One of `matched_pair.EQUAL`."""
    adapts: str = "dense"
    """The model whose width is set so that the two are equal: dense or moe."""
    seeds: int = 3
    tokenizer: str = "word"
    vocab_size: int | None = None
    """Size of a byte-level vocabulary to be trained; None for its default."""
    aside: bool = False
    """Whether it only shows what balance does: of its models, the mixture alone is kept."""

    def check(self, matched: MatchedPair, limits: Limits) -> None:
        """Raise LimitError if the spec asks for too much."""
        limits.check_comparison(self.seeds)
        for config in (matched.dense, matched.moe):
            limits.check_training(config, self.training)

    def matched(self, vocab_size: int | None = None) -> MatchedPair:
        """The matched pair. Raises ValueError if no pair matches."""
        known = {} if vocab_size is None else {"vocab_size": vocab_size}
        if self.adapts == "dense":
            return match_dense(self.moe.replace(**known), self.equal)
        return match_experts(self.dense.replace(**known), self.moe.replace(**known), self.equal)


@dataclass(frozen=True)
class Paired:
    """Event: the pair is matched and the text has been read, so training begins."""

    matched: MatchedPair
    prepared: Prepared


def run_comparison(
    spec: ComparisonSpec,
    limits: Limits,
    *,
    should_stop: Callable[[str], bool] = lambda side: False,
) -> Iterator[Any]:
    """Read the text, match the pair, train and judge it: Paired, then events of `compare`, and Laddered once.

    `should_stop(side)` is called after every step of a side. Raises ValueError with a sentence if text, models and
    settings do not fit together or exceed a limit.
    """
    corpus = corpus_for(spec, limits)
    matched = spec.matched(corpus.vocab_size)
    spec.check(matched, limits)
    corpus.check_context(matched.dense.context_length)
    yield Paired(matched, Prepared.of(corpus, matched.moe))
    plan = PairPlan(matched.dense, matched.moe, spec.training, spec.seeds)
    baselines = Background(lambda: laddered(corpus, matched.dense.context_length, spec.training))
    with threads_for(matched.dense.numbers_in_step(spec.training.batch_size)):
        yield from baselines.beside(compare(plan, corpus, should_stop=should_stop))
    yield from baselines.rest()


# ---- the job ---------------------------------------------------------------------------------------------------------


class ComparisonJob(TrainingJob):
    """One comparison: its thread and its results so far."""

    kind = "comparison"
    runner: ClassVar[Callable[..., Iterator[Any]]] = staticmethod(run_comparison)

    def __init__(self, job_id: str, visitor: str, name: str, spec: ComparisonSpec, limits: Limits, registry: Registry):
        super().__init__(job_id, visitor, name, spec, limits, registry)
        self._matched = spec.matched()  # as far as known before the text is read
        self.models = {new_id(): False for _ in SIDES}
        self._histories: dict[str, list[History]] = {side: [] for side in SIDES}
        self._reasons: dict[str, list[str]] = {side: [] for side in SIDES}
        self._verdict: Verdict | None = None

    @property
    def model_ids(self) -> dict[str, str]:
        """dense and moe → the id of that side's model in the first pair, in the registry or not."""
        return dict(zip(SIDES, self.models))

    def start(self) -> None:
        """Begin; after a restart, from the beginning."""

        def events(should_stop: Callable[[], bool]) -> Iterator[Any]:
            def stops(side: str) -> bool:
                return should_stop() or self.worked > self.limits.seconds

            yield from self.runner(self._with_moments(self.spec.moe, 16), self.limits, should_stop=stops)
            yield _OVER

        self.begin("Reading the text …", events, self._take)

    def view(self) -> PairView:
        """A consistent copy of the comparison's present state."""
        with self._lock:
            sides = {side: self._side(side) for side in SIDES} if self._prepared else {}
            return PairView(
                **self.seen_as(),
                sides=sides,
                seeds=self.spec.seeds,
                equal=self.spec.equal,
                matched=self._matched if self._prepared else None,
                verdict=self._verdict,
                withheld=self._withheld(),
            )

    def _side(self, side: str) -> SideView:
        return SideView(
            config=getattr(self._matched, side),
            histories=tuple(history.copied() for history in self._histories[side]),
            planned_steps=self.spec.training.steps,
            reasons=tuple(self._reasons[side]),
        )

    @property
    def time_left(self) -> float | None:
        if self.state != "training" or not all(self._histories.values()):
            return None
        ended = {side for side in SIDES if any(reason != "done" for reason in self._reasons[side])}
        # once a side was stopped, no further pair begins
        pairs = len(self._histories["dense"]) if ended else self.spec.seeds
        made = sum(history.last_step for side in SIDES for history in self._histories[side])
        going = [self._histories[side] for side in SIDES if side not in ended]
        left = sum(self.spec.training.steps * (pairs - len(own) + 1) - own[-1].last_step for own in going)
        return self.rest_of(made / max(made + left, 1))

    def _withheld(self) -> str:
        """Why there is no verdict on all the requested pairs."""
        pair = max(len(self._histories["dense"]), 1)
        ended = {side: self._reasons[side][-1] for side in SIDES if len(self._reasons[side]) == pair}
        early = {side: reason for side, reason in ended.items() if reason != "done"}
        if not early:
            return ""
        if "diverged" in early.values():
            who = " and ".join(NAMES[side] for side, reason in early.items() if reason == "diverged")
            return f"{who} diverged, so this pair is not judged: try a lower learning rate or a longer warm-up."
        steps = {side: self._histories[side][-1].last_step for side in early}
        who = " and ".join(
            f"{NAMES[side]} after step {n:,} of {self.spec.training.steps:,}" for side, n in steps.items()
        )
        judged = " The verdict is on the others." if self._verdict is not None else ""
        return f"Stopped: {who}. A pair that was stopped is not judged.{judged}"

    def expected(self, seconds: Callable[..., float]) -> float:
        both = sum(seconds(config, self.spec.training) for config in (self._matched.dense, self._matched.moe))
        return min(both * self.spec.seeds, self.limits.seconds)

    # ---- after a restart ---------------------------------------------------------------------------------------------

    def noted(self) -> dict[str, Any]:
        with self._lock:
            return super().noted() | {
                "models": self.model_ids,
                "histories": {side: [history.to_dict() for history in self._histories[side]] for side in SIDES},
                "reasons": self._reasons,
                "verdict": dataclasses.asdict(self._verdict) if self._verdict else None,
            }

    @classmethod
    def found(
        cls, row: Mapping[str, Any], noted: Mapping[str, Any], limits: Limits, registry: Registry
    ) -> ComparisonJob:
        """The comparison for a row of the index and its notes, after a restart.

        One that was at work when the server ended begins again, and gives the same digits.
        """
        spec = TypeAdapter(ComparisonSpec).validate_python(noted["spec"])
        job = cls(row["id"], row["visitor"], row["name"], spec, limits, registry)
        job.models = {noted["models"][side]: False for side in SIDES}
        job._find(noted)
        if job._prepared:
            job._matched = spec.matched(job._prepared.config.vocab_size)
        if row["state"] == "over":
            job._find_over(noted)
            job._histories = {side: list(map(History.from_dict, noted["histories"][side])) for side in SIDES}
            job._reasons = noted["reasons"]
            job._verdict = Verdict(**noted["verdict"]) if noted["verdict"] else None
        else:
            job._notices = []  # one that begins again will say it again
        return job

    # ---- events ------------------------------------------------------------------------------------------------------

    def _take(self, event: Any) -> None:
        if isinstance(event, SideEvent) and isinstance(event.event, Snapshotted):
            if event.seed == self.spec.training.seed:
                self._keep_moment(lambda: self._put_weights_away(event.side, event.event))
            return
        with self._lock:
            if isinstance(event, Paired):
                self._matched, self._prepared, self.message = event.matched, event.prepared, "Building the models …"
            elif isinstance(event, SideEvent):
                self._take_told(event)
            elif isinstance(event, Trained):
                self._reasons[event.side].append(event.reason)
            elif isinstance(event, PairsJudged):
                self._verdict = event.verdict
            elif isinstance(event, Laddered):
                self._take_ladder(event)
            elif event is _OVER:
                self.state, self.message = "finished", self._ending()
            self.version += 1
        wanted = isinstance(event, Trained) and event.seed == self.spec.training.seed
        if wanted and not (self.spec.aside and event.side == "dense"):
            self._keep(event)

    def _take_told(self, told: SideEvent) -> None:
        place, event = told.seed - self.spec.training.seed, told.event
        histories = self._histories[told.side]
        if len(histories) <= place:
            histories.append(History())
        histories[place].add(event)
        if self.state == "preparing":
            self.state, self.message = "training", ""
        if isinstance(event, Started):
            self._started = event
        elif isinstance(event, Noticed) or (isinstance(event, Finished) and event.reason == "diverged"):
            self._notices.append(f"{NAMES[told.side]}: {message(event)}")

    def _ending(self) -> str:
        if self._verdict and self._verdict.seeds == self.spec.seeds:
            return "The pair is trained." if self.spec.seeds == 1 else "All pairs are trained."
        return self._withheld() or "Stopped. Both models are saved."

    def _keep(self, event: Trained) -> None:
        """Put one model of the first pair into the registry."""
        with self._lock:
            history = self._histories[event.side][0].copied()
        model_id, other = (self.model_ids[side] for side in sorted(SIDES, key=lambda side: side != event.side))
        name = f"{NAMES[event.side]} {self.name.partition(' ')[2]}"  # “Comparison 2 · …” gives “Dense 2 · …”
        comparison = {"with": other, "equal": self.spec.equal}
        self._put(
            model_id, self._checkpoint(model_id, event.model, history, name, self.spec.training, comparison=comparison)
        )

    def _put_weights_away(self, side: str, event: Snapshotted) -> None:
        folder = self.registry.data.folder_of(self.model_ids[side])
        keep_snapshot(folder, event.step, event.state, tied=self._matched.moe.tie_embeddings)


_OVER = object()
