"""Why a model wrote something: a search for the passages behind it, and the proof by training without them.

Both are jobs. A search takes seconds; a proof trains twice. Several proofs of one claim, each with its own seed, give
an interval. All proofs about a model together say how good the ranking's predictions are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from pydantic import TypeAdapter

from ..data import Corpus
from ..influence.gradients import log_probability
from ..influence.proof import Trial, mean_effect, prove, quiet, said_instead
from ..influence.ranking import Passage, Progress, Ranked, moments_of, rank
from ..processes import threads_for
from ..storage import Checkpoint
from ..training import TrainConfig
from ..training.losses import Interrupted
from .data_folder import new_id
from .job import Job
from .limits import Limits
from .models import Registry
from .texts import TextSpec, text_of
from .views import View

KEPT_SEARCHES, KEPT_PROOFS = 8, 40
"""Most jobs kept for one visitor; the oldest leave first."""
SEARCH_SECONDS = 15.0
"""About how long a search takes."""
NO_RECORD = "Its training settings are not known, so it cannot be trained again. Train a model here"
LEARNED_SINCE = "The model has changed since it wrote this. Generate the text again"
AGAIN = "Stopped. Press “{}” to start again."


@dataclass(frozen=True)
class Question:
    """A selection in a text that a model wrote."""

    model_id: str
    step: int
    """The step of the weights that wrote it."""
    ids: tuple[int, ...]
    """The text's tokens, beginning with the prompt's, up to the last selected one."""
    first: int
    """The index of the first selected token."""
    text: TextSpec


@dataclass(frozen=True)
class Proven:
    """The result of one proof."""

    trial: Trial
    before: float
    """The selection's log-probability according to the model itself, in nats."""
    predicted: float
    """The passages' influence together, in the ranking's own units."""
    said: str = ""
    """What the model itself writes in place of the selection, always with the likeliest token."""


class WhyJob(Job):
    """What searches and proofs have in common."""

    RESULT: ClassVar[type]
    NAME: ClassVar[str]
    BUTTON: ClassVar[str]

    def __init__(self, job_id: str, visitor: str, question: Question, limits: Limits, registry: Registry):
        super().__init__(job_id, visitor, self.NAME, limits, registry)
        self.question = question
        self.result: Any = None
        """The result; None before the job is over."""

    @property
    def has_result(self) -> bool:
        return self.result is not None

    def view(self) -> View:
        """What the page shows of the job now."""
        with self._lock:
            return View(**self.seen_as())

    def start(self) -> None:
        """Begin, in a thread of its own."""

        def events(should_stop: Callable[[], bool]) -> Iterator[Any]:
            try:
                with threads_for(self._checkpoint().config.numbers_in_step(16)):
                    yield from self._events(should_stop)
            except Interrupted:
                raise ValueError(self.STOPPED) from None

        self.begin("Reading the text …", events, self._take)

    def _events(self, should_stop: Callable[[], bool]) -> Iterator[Any]:
        raise NotImplementedError

    def _take(self, event: Any) -> None:
        with self._lock:
            if isinstance(event, Progress):
                self.done = event.share
                if self.state == "preparing":
                    self.state, self.message = "training", ""
            elif isinstance(event, self.RESULT):
                self.result, self.state, self.message = event, "finished", ""
            self.version += 1

    @property
    def where(self) -> str:
        names = {entry.id: entry.name for entry in self.registry.models(self.visitor)}
        name = names.get(self.question.model_id)
        return f" on Generate, with “{name}” chosen" if name else ""

    def _checkpoint(self) -> Checkpoint:
        checkpoint = self.registry.get(self.question.model_id, self.visitor)
        if checkpoint.history.last_step != self.question.step:
            raise ValueError(LEARNED_SINCE)
        return checkpoint

    def noted(self) -> dict[str, Any]:
        result = asdict(self.result) if self.result is not None else None
        return {"question": asdict(self.question), "result": result, "message": self.message}

    @classmethod
    def found(cls, row: Mapping[str, Any], noted: Mapping[str, Any], limits: Limits, registry: Registry) -> WhyJob:
        """Restore a job after a restart from a row of the index."""
        question = TypeAdapter(Question).validate_python(noted["question"])
        job = cls(row["id"], row["visitor"], question, *cls._own(noted), limits, registry)
        job.result = TypeAdapter(cls.RESULT | None).validate_python(noted["result"])
        if row["state"] == "over":
            job._find_over(noted)
        return job

    @classmethod
    def _own(cls, noted: Mapping[str, Any]) -> tuple[Any, ...]:
        """What this kind was asked for besides the question, from its notes."""
        return ()


class SearchJob(WhyJob):
    """The search for the passages with most influence on a selection: so short that it gives way to other jobs."""

    kind, gives_way = "search", True
    RESULT, NAME, BUTTON = Ranked, "The search for passages", "Find the passages"
    STOPPED = AGAIN.format(BUTTON)

    def expected(self, seconds: Callable[..., float]) -> float:
        return SEARCH_SECONDS

    def _events(self, should_stop: Callable[[], bool]) -> Iterator[Progress | Ranked]:
        checkpoint, question = self._checkpoint(), self.question
        corpus = text_of(checkpoint, question.text, self.limits)
        training, snapshots = checkpoint.training, checkpoint.snapshots
        kept = snapshots.steps if snapshots is not None else ()
        opened = (lambda step: snapshots.model(step)) if snapshots is not None else (lambda step: None)
        moments = moments_of(checkpoint.model, question.step, training, kept, opened)
        ids, settings = list(question.ids), training or TrainConfig()
        return rank(moments, corpus, settings, ids, question.first, should_stop=should_stop)


class ProofJob(WhyJob):
    """Two trainings with one seed: without some passages, and without as many random ones."""

    kind = "proof"
    RESULT, NAME, BUTTON = Proven, "The proof", "Prove it"
    STOPPED = AGAIN.format(BUTTON)

    def __init__(
        self,
        job_id: str,
        visitor: str,
        question: Question,
        passages: tuple[Passage, ...],
        seed: int,
        limits: Limits,
        registry: Registry,
    ):
        super().__init__(job_id, visitor, question, limits, registry)
        self.passages, self.seed = passages, seed

    @property
    def claim(self) -> tuple:
        """A key that is the same for proofs that differ only in their seed."""
        return self.question, tuple(sorted(each.places for each in self.passages))

    def expected(self, seconds: Callable[..., float]) -> float:
        checkpoint = self.registry.here(self.question.model_id)
        return self.seconds(checkpoint, seconds) if checkpoint and checkpoint.training else SEARCH_SECONDS

    @staticmethod
    def seconds(checkpoint: Checkpoint, seconds: Callable[..., float]) -> float:
        """Rough seconds for a proof about a model whose training is known; see `Job.expected`."""
        training = quiet(checkpoint.training).replace(steps=checkpoint.history.last_step)
        return 2 * seconds(checkpoint.config, training)

    def _events(self, should_stop: Callable[[], bool]) -> Iterator[Progress | Proven]:
        checkpoint, question = self._checkpoint(), self.question
        training, corpus = checkpoint.training, text_of(checkpoint, question.text, self.limits)
        if training is None:
            raise ValueError(NO_RECORD)
        self.limits.check_training(checkpoint.config, training)
        ids, most = list(question.ids), 2 * self.limits.seconds
        ranges = sorted(place for each in self.passages for place in each.places)
        before = log_probability(checkpoint.model, ids, question.first)
        foretold = sum(each.effect for each in self.passages)
        said = said_instead(checkpoint.model, corpus, ids, question.first)
        trained = prove(
            checkpoint.config,
            training,
            corpus,
            ranges,
            ids,
            question.first,
            steps=question.step,
            seed=self.seed,
            should_stop=lambda: should_stop() or self.worked > most,
        )
        for event in trained:
            yield Proven(event, before, foretold, said) if isinstance(event, Trial) else event

    def noted(self) -> dict[str, Any]:
        return super().noted() | {"passages": [asdict(each) for each in self.passages], "seed": self.seed}

    @classmethod
    def _own(cls, noted: Mapping[str, Any]) -> tuple[Any, ...]:
        return TypeAdapter(tuple[Passage, ...]).validate_python(noted["passages"]), noted["seed"]


# ---- what the board is asked for -------------------------------------------------------------------------------------


def search(board: Any, visitor: str, question: Question, *, share: str = "") -> SearchJob:
    """Begin a search, or queue it. Raises LimitError."""
    job = SearchJob(new_id(), visitor, question, board.limits, board.registry)
    return board.begin(job, "", share, keep=KEPT_SEARCHES)


def prove_it(
    board: Any, visitor: str, question: Question, passages: tuple[Passage, ...], *, share: str = ""
) -> ProofJob:
    """Begin a proof with the next untried seed for its claim, or queue it. Raises ValueError."""
    checkpoint = board.registry.get(question.model_id, visitor)
    training = checkpoint.training
    if training is None:
        raise ValueError(NO_RECORD)
    if not passages:
        raise ValueError("No passage is chosen. Choose at least one")
    job = ProofJob(new_id(), visitor, question, passages, training.seed, board.limits, board.registry)
    done = [each.seed for each in board.of(visitor, kind=ProofJob) if each.claim == job.claim and each.has_result]
    job.seed = max([training.seed - 1, *done]) + 1
    return board.begin(job, "", share, keep=KEPT_PROOFS)


def proofs_of(board: Any, visitor: str, model_id: str) -> list[ProofJob]:
    """The finished proofs about one model, the oldest first."""
    return [job for job in board.of(visitor, kind=ProofJob) if job.question.model_id == model_id and job.has_result]


def by_claim(proofs: Iterable[ProofJob]) -> list[list[ProofJob]]:
    """The proofs of each claim, in the order in which the claims were first proved."""
    found: dict[tuple, list[ProofJob]] = {}
    for each in proofs:
        found.setdefault(each.claim, []).append(each)
    return list(found.values())


def scores_of(proofs: Iterable[ProofJob]) -> tuple[list[float], list[float]]:
    """The predicted and the actual effect of each claim, whose seeds are averaged."""
    claims = by_claim(proofs)
    actual = [mean_effect([each.result.trial for each in same])[0] for same in claims]
    return [same[0].result.predicted for same in claims], actual


def corpus_of(board: Any, checkpoint: Checkpoint) -> tuple[TextSpec, Corpus]:
    """The corpus that a model learned from. Raises ValueError if it is not known here, or is one of two."""
    if checkpoint.about.get("parent"):
        raise ValueError("A model that was trained further cannot be traced. Train a new one on this text")
    text = TextSpec.of(checkpoint, board.spec_of(checkpoint))
    return text, text_of(checkpoint, text, board.limits)
