"""What the pair panel selects (two models, a curve, open folds, prompts), and what a view knows about it (`At`)."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from ....inspection.routing import expert_layers, second
from ....service.comparisons import ComparisonJob, ComparisonSpec
from ....service.views import PairView, pair_of
from ....storage import Checkpoint
from ... import theme
from ...page import Page
from ...panel import Slot, blank
from ...prompts import suggestions
from ...refusals import sentence
from ...selected import Selected

LINES = 110
"""How many characters of the language come before the first prompt at most, rounded up to whole sentences."""
TEXT_SEED = 29
"""With this seed, three speakers take turns in the first lines of Dialects."""
PROMPT = """<label class="field-label grow">Prompt
<textarea rows="1" name="prompt" data-resets="token off" dir="auto" autocomplete="off" spellcheck="false"
placeholder="Type a prompt"></textarea></label>"""
"""The field of the prompt, in each fold that reads it."""
SHIPPED = ("shipped-dialects-dense", "shipped-dialects-moe")
"""The recorded pair."""


class Selection(Selected):
    """All that the browser keeps of this tab. Tokens, layers and experts count from 0."""

    model: str = ""
    """The model chosen on all tabs: if it belongs to a pair, that pair is shown."""
    dense: str = ""
    mixture: str = ""
    """The dense model's id; empty for the chosen model's pair."""
    pair: str = ""
    """Both ids in one word, as in the drop-down; they override `dense` and `mixture`."""
    seen_with: str = ""
    """The model that was chosen when this pair was shown."""
    curve: str = "loss"
    routing: bool = False
    loads: bool = False
    experts: bool = False
    breaking: bool = False
    figures: bool = False
    texts: bool = False
    prompt: str | None = None
    """What the folds read: the mixture routes it, both models continue it. None stands for the model's suggestion."""
    typed: bool = False
    layer: int | None = None
    token: int = 0
    """The token that is followed."""
    off: tuple[int, ...] | None = None
    """The experts to be switched off; None stands for the one that the last token visits."""
    worth: bool = False
    seed: int = 0


@dataclass(frozen=True, eq=False)
class At:
    """The page, the selection and the comparison from which a view of the tab is drawn."""

    page: Page
    visitor: str
    chosen: Selection
    """`dense` and `mixture` are ids of models that exist, or will exist once `job` is over."""
    job: ComparisonJob | None
    """The comparison shown; None if two models are shown without one."""

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of both models."""
        return self.chosen.dense, self.chosen.mixture

    @functools.cached_property
    def view(self) -> PairView | None:
        """The comparison so far, or else the two models, with their verdict only if it is already known."""
        return self.seen(judged=False)

    def seen(self, *, judged: bool = True) -> PairView | None:
        """Like `view`; with `judged`, a missing verdict is computed, which takes a moment."""
        if self.job:
            return self.job.view()
        if not all(self.ids):
            return None
        dense, mixture = self.pair
        return pair_of(self.ids[0], dense, self.ids[1], mixture, judged=judged)

    @functools.cached_property
    def by_balance(self) -> dict[bool, PairView]:
        """This comparison, by whether it balances its experts; and the newest one that differs in that alone."""
        if self.job is None:
            return {self.view.sides["moe"].config.balance != "none": self.view} if self.view else {}
        jobs, same = self.page.board.of(self.visitor, kind=ComparisonJob), _but_balance(self.job.spec)
        alike = (job for job in (*jobs, self.job) if _but_balance(job.spec) == same)
        return {job.spec.moe.balance != "none": job.view() for job in alike}

    @functools.cached_property
    def pair(self) -> tuple[Checkpoint, Checkpoint]:
        """Both models. Raises ValueError while one is missing."""
        return tuple(self.page.registry.get(model_id, self.visitor) for model_id in self.ids)

    @property
    def mixture(self) -> Checkpoint:
        """The MoE model. Raises ValueError while it does not exist."""
        return self.page.registry.get(self.chosen.mixture, self.visitor)

    def undrawn(self, template: str, note: str, problem: ValueError) -> dict[str, Slot]:
        """The slots of a part that cannot be drawn; one keeps its height while its models train."""
        if self.job and self.job.active and not self.page.registry.has(self.chosen.mixture, self.visitor):
            said = theme.quiet("Both models are training. This part appears when they are done.")
            return {note: Slot(said, lambda: f'<div class="untrained">{said}</div>')}
        return blank(template, note, theme.notice(sentence(str(problem)), "error"))

    @property
    def about(self) -> tuple:
        """Everything on which drawings of the mixture depend."""
        return self.chosen.mixture, self.page.step_of(self.visitor, self.chosen.mixture)

    @property
    def about_both(self) -> tuple:
        """Cache key for pictures of both models."""
        return self.chosen.dense, self.page.step_of(self.visitor, self.chosen.dense), *self.about


def pairs(page: Page, visitor: str | None) -> dict[tuple[str, str], str]:
    """(dense, mixture) → name of every pair that was trained as one, the newest first, the recorded one last."""
    jobs = page.board.of(visitor, kind=ComparisonJob)
    own = {_ids(job): job.name for job in reversed(jobs) if len(job.learned) == 2}
    there = all(page.registry.has(model_id, visitor) for model_id in SHIPPED)
    return own | ({SHIPPED: "Dialects: dense + MoE"} if there else {})


def at(page: Page, visitor: str, chosen: Selection) -> At:
    """What to show: the running comparison, or else the chosen pair."""
    jobs = page.board.of(visitor, kind=ComparisonJob)
    going = next((job for job in reversed(jobs) if job.active and not job.spec.aside), None)
    if going is not None:
        return At(page, visitor, _with(chosen, _ids(going)), going)
    known = pairs(page, visitor)
    given = tuple(chosen.pair.split(" ")) if chosen.pair else (chosen.dense, chosen.mixture)
    having = lambda *names: [pair for name in names for pair in known if name in pair]  # noqa: E731
    if chosen.seen_with in ("", chosen.model) or chosen.pair != f"{chosen.dense} {chosen.mixture}":
        wanted = [given, tuple(f"shipped-{each}" for each in given), *having(*reversed(given), chosen.model)]
    else:  # another model was chosen meanwhile: it brings its pair along, or else an own pair stays
        wanted = having(chosen.model) + [given] * (given != SHIPPED)
    ids = next((pair for pair in wanted if pair in known), next(iter(known), ("", "")))
    job = next((job for job in jobs if _ids(job) == ids and len(job.learned) == 2), None)
    return At(page, visitor, _with(chosen, ids), job)


def within(here: At) -> At:
    """The selection, limited to a layer and experts that this mixture has, and to texts that the models know."""
    try:
        config = here.mixture.config
        layers = expert_layers(config)
    except ValueError:
        return here
    chosen = here.chosen
    if chosen.layer not in layers and (chosen.routing or chosen.experts or chosen.breaking):
        chosen = chosen.moved(layer=second(layers), off=None)
    if chosen.off is not None:
        chosen = chosen.moved(off=tuple(sorted({e for e in chosen.off if 0 <= e < config.n_experts})))
    if chosen.prompt is None and (chosen.routing or chosen.breaking or chosen.texts):
        chosen = chosen.moved(prompt=prompts(here.page, here.ids[1], here.visitor)[0])
    return replace(here, chosen=chosen)


def prompts(page: Page, model_id: str | None, visitor: str | None) -> list[str]:
    """Prompts that suit the model; before the first stand as many lines of its language as it can read at once."""
    known, checkpoint = suggestions(page, model_id, visitor), page.registry.get(model_id, visitor)
    if checkpoint.language is None:
        return known
    lines = [*checkpoint.language.sample(LINES, seed=TEXT_SEED).splitlines(), known[0].splitlines()[-1]]
    while len(checkpoint.tokenizer.encode("\n".join(lines))) > checkpoint.config.context_length and len(lines) > 1:
        lines.pop(0)
    return ["\n".join(lines), *known]


def _but_balance(spec: ComparisonSpec) -> ComparisonSpec:
    """The spec without what `train_again` may change."""
    return replace(spec, seeds=1, aside=False, moe=spec.moe.replace(balance="none"))


def _ids(job: ComparisonJob) -> tuple[str, str]:
    return job.model_ids["dense"], job.model_ids["moe"]


def _with(chosen: Selection, ids: tuple[str, str]) -> Selection:
    return chosen.moved(dense=ids[0], mixture=ids[1], pair=" ".join(ids), seen_with=chosen.model)
