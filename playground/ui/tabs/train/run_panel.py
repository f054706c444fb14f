"""The run panel: a run's result, its curve, its samples; below, folded, everything else known about it.

It shows the running run, or else the chosen model's. A run that has just ended stays until its model is chosen.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....service.run_job import RunJob
from ....service.views import RunView
from ....words.tuning import noted_result
from ... import theme
from ...chart import chart_place, show
from ...links import carried
from ...page import Page
from ...panel import Asked, Shown, Slot, button, deed_button, slot
from ...selected import Selected
from ...under_way import notices
from . import speaking, verdict, watch
from .linked import has_link, match
from .running import Running, recorded
from .runs_table import BESIDE, kept_words, runs_table


def _fold(name: str, title: str, inside: str, *, where: str = "") -> str:
    """A fold that opens in place; `where` is the selection's field without which it is empty."""
    seen = f' data-if="{where}"' if where else ""
    return f'<details class="fold" data-fold="{name}"{seen}><summary>{title}</summary>{inside}</details>'


TEMPLATE = f"""<div class="card run-card">
{slot("notices")}{slot("problem", tag="p", class_="notice notice-error", role="alert")}
<div id="status">{slot("headline", tag="h2")}{slot("about", tag="p", class_="quiet", dir="auto")}
<div class="line numbers">{slot("numbers", tag="p", class_="num")}<details data-fold="details" data-if="measured">
<summary>Details</summary></details></div>{slot("why", tag="p", class_="quiet")}<div data-if="details">{
    slot("details")
}</div></div>
{slot("tuned")}
<div id="curve">{chart_place("curve", height=360, save_name="loss")}</div>
<div class="stack">{slot("sample", data_if="has_samples")}{slot("buttons", class_="line tight")}</div>
{slot("remarks")}</div>
{_fold("samples", "Samples along the way", f'<div id="samples">{slot("samples")}</div>', where="has_samples")}
{_fold("baselines", "Baselines", f'<div id="rungs">{slot("rungs")}</div>', where="has_baselines")}
{_fold("runs", "Your runs", slot("runs") + slot("manage"), where="has_runs")}
{
    _fold(
        "inside",
        "Inside the run",
        f'''<div id="predictions"><h3>Next token</h3>{slot("asked")}
{chart_place("predictions", height=280, save_name="next-token")}</div>
<div id="gradients"><h3>Gradients</h3>{chart_place("gradients", height=280, save_name="gradients")}</div>
<div id="similarity" data-if="words"><h3>Embeddings</h3>{slot("similarity-note")}
{chart_place("similarity", height=320, save_name="word-similarity")}</div>''',
    )
}"""


class Selection(Selected):
    """All that the browser keeps of this panel."""

    model: str = ""
    run: str = ""
    """The run last seen at work, as long as `before` is still the chosen model."""
    before: str = ""
    beside: tuple[str, ...] = ()
    """Runs whose curves are drawn as well."""
    rename: str = ""
    details: bool = False
    samples: bool = False
    baselines: bool = False
    runs: bool = False
    inside: bool = False


@dataclass(frozen=True, eq=False)
class At:
    """The run and the selection from which the panel is drawn."""

    page: Page
    visitor: str
    chosen: Selection
    view: RunView | None
    """None if there is no model at all."""
    job: RunJob | None
    """The run itself; None if only its record exists."""
    jobs: list[RunJob]
    """All the visitor's runs."""

    @property
    def own(self) -> bool:
        """Whether the run is the visitor's own, which they may rename and delete."""
        return self.view.learned and self.page.registry.owns(self.view.id, self.visitor)

    @property
    def beside(self) -> list[RunJob]:
        """The runs whose curves are drawn as well."""
        ticked = [job for job in self.jobs if job.id in self.chosen.beside and job.id != self.view.id]
        return ticked[-BESIDE:]


def show_run(page: Page, running: Running, asked: Asked) -> Shown:
    """The view: what the panel shows for a selection."""
    at = _at(page, running, asked)
    view, chosen = at.view, at.chosen
    if view is None:
        return Shown(chosen.to_dict(), {"headline": Slot(None, lambda: "Nothing has been trained yet.")})
    slots = _card(at)
    for name, make in {"samples": _samples, "baselines": _baselines, "runs": _runs, "inside": _inside}.items():
        if getattr(chosen, name):
            slots |= make(at)
    there = {
        "measured": view.history.val_loss is not None,
        "has_samples": bool(view.history.samples) or view.active,  # folds that come later would push the others down
        "has_baselines": view.baselines is not None or view.active,
        "words": view.learned and view.tokenizer is not None and view.tokenizer.kind == "word",
        "has_runs": bool(at.jobs or page.registry.news(at.visitor)),
    }
    model = view.id if page.registry.has(view.id, at.visitor) else ""
    return Shown(chosen.to_dict() | there, slots, {"model": view.name, "step": view.history.last_step}, model=model)


def _at(page: Page, running: Running, asked: Asked) -> At:
    visitor, chosen = asked.visitor, Selection.read(asked.selection)
    jobs = page.board.of(visitor)
    going = next((job for job in reversed(jobs) if job.active), None)
    if going is None and chosen.before == chosen.model:  # its model is chosen as soon as it exists
        going = next((job for job in jobs if job.id == chosen.run and (job.learned or not job.settled)), None)
    seen = {"run": going.id, "before": chosen.model} if going else {"run": "", "before": ""}
    job = going or page.board.find(visitor, chosen.model)
    view = going.view() if going else running.view_of(visitor, chosen.model)
    view = view or recorded(page, page.registry.default)
    beside = tuple(each.id for each in jobs if each.id in chosen.beside)
    return At(page, visitor, chosen.moved(**seen, beside=beside), view, job, jobs)


# ---- the card --------------------------------------------------------------------------------------------------------


def _card(at: At) -> dict[str, Slot]:
    view, history, beside = at.view, at.view.history, [job.view() for job in at.beside]
    measured = len(history.evaluations["step"])
    this = (view.id, view.state, view.name, view.used, measured)
    facts = (*this, view.version if view.active else 0, len(history.judged), view.busy, view.baselines is None)
    drawn = tuple((other.id, other.name, len(other.history.evaluations["step"])) for other in beside)
    spec = at.job.spec if at.job else None
    slots = {
        "notices": notices(at.page, at.visitor, RunJob, view.id),
        "headline": Slot(facts, lambda: html.escape(verdict.headline(view))),
        "about": Slot(this, lambda: verdict.about(view)),
        "numbers": Slot(facts, lambda: verdict.numbers(view)),
        "why": Slot(facts, lambda: verdict.why(view)),
        "curve": Slot((facts, drawn, history.last_step), lambda: show(*watch.curve(view, beside), aloud=not drawn)),
        "sample": Slot((this, len(history.samples), view.learned_text is None), lambda: watch.sample(view)),
        "remarks": Slot(
            (this, view.notices), lambda: "".join(theme.notice(n, "warning") for n in view.notices) + match(view, spec)
        ),
        "buttons": Slot((this, view.kept, view.can_resume, at.own, has_link(view, spec)), lambda: _buttons(at)),
    }
    told = ""
    if view.tuning:
        result = noted_result(view.tuning)
        slots["headline"] = Slot((this, result), lambda: html.escape(result.headline))
        slots["numbers"] = Slot((this, result), lambda: verdict.tuned_numbers(view, result.number))
        told = theme.quiet(result.details)
    slots["tuned"] = Slot((this, view.tuning is None), lambda: watch.tuned(view))
    if at.chosen.details:
        slots["details"] = Slot((facts, told), lambda: told + verdict.details(view))
    return slots


def _about_it(view: RunView) -> str:
    return f'{{"of": "{html.escape(view.id)}"}}'


def _buttons(at: At) -> str:
    view, parts, this, last = at.view, [], _about_it(at.view), f"{at.view.history.last_step:,}"
    if view.learned:
        parts.append(button("Talk to it →", kind="primary", id="talk", data_open_tab="generate"))
    if view.learned and view.kept:
        title = f"You can go back to step {last}." if view.can_return else f"The weights of step {last} will be lost."
        parts.append(deed_button(f"Use step {view.kept:,}", "use_best", id="use-best", data_with=this, title=title))
    elif view.used is not None and view.can_return:
        parts.append(deed_button(f"Use the last step ({last})", "use_last", id="use-last", data_with=this))
    if label := watch.resume_label(view):
        parts.append(deed_button(label, "resume_run", id="resume-button", data_with=this))
    if view.learned:
        parts.append(f'<details class="menu"><summary>Share ▾</summary><div>{_share(at)}</div></details>')
    return "".join(parts)


def _share(at: At) -> str:
    spec = at.job.spec if at.job else None
    parts = []
    if has_link(at.view, spec) or at.page.shares(at.visitor, at.view.id):
        holds = carried(at.page, at.visitor, at.view.id)
        parts.append(holds + button("Copy link", id="copy-run", data_copy_link=True))
    parts.append(button("Download or save to the Hub", data_unfold="take"))
    return "".join(parts)


# ---- the folds -------------------------------------------------------------------------------------------------------


def _samples(at: At) -> dict[str, Slot]:
    view = at.view
    known = (view.id, view.state, len(view.history.samples), view.learned_text is None)
    return {"samples": Slot(known, lambda: watch.samples(view))}


def _baselines(at: At) -> dict[str, Slot]:
    view = at.view
    known = (view.id, view.baselines and view.baselines.losses(), view.learned_text is None)
    return {"rungs": Slot(known, lambda: speaking.panel(view))}


def _runs(at: At) -> dict[str, Slot]:
    beside = at.chosen.beside
    alike = {job.id for job in at.jobs if job.corpus_key and job.corpus_key == at.view.corpus_key}
    known = tuple((job.id, job.name, job.state, job.evaluations, job.used) for job in at.jobs)
    return {
        "runs": Slot(
            (known, at.view.id, beside),
            lambda: runs_table([job.view() for job in at.jobs], at.view.id, beside=beside, alike=alike),
        ),
        "manage": Slot((at.view.id, at.view.name, at.own), lambda: _manage(at)),
    }


def _manage(at: At) -> str:
    view, parts = at.view, []
    if at.own:
        name, this = html.escape(view.name, quote=True), _about_it(view)
        sure = "Delete this run, its model and its files for good?"
        parts.append(
            f'<div class="line tight"><input type="text" name="rename" dir="auto" maxlength="60" placeholder="{name}" '
            f'aria-label="New name of {name}">{deed_button("Rename", "rename_run", data_with=this)}'
            f"{deed_button('Delete', 'delete_run', data_with=this, data_sure=sure)}</div>"
        )
    sure = (
        "Delete everything that this page keeps about you: models, runs, comparisons, texts, lessons, your place in a "
        "class? This cannot be undone."
    )
    lasting = at.page.registry.data.lasting  # where nothing lasts, the form says so already
    kept = theme.quiet(kept_words(at.page.limits, lasting=True)) if lasting else ""
    return "".join(parts) + f"{kept}{deed_button('Delete my data', 'forget_me', kind='link', data_sure=sure)}"


def _inside(at: At) -> dict[str, Slot]:
    view, history = at.view, at.view.history
    this = (view.id, view.state, view.used)
    of_model = {} if view.used is None else {"step": view.used}

    def drawn(make: Callable[[], tuple], **facts: Any) -> Callable[[], Any]:
        return lambda: show(*make(), **of_model, **facts)

    return {
        "asked": Slot(view.prompt, lambda: theme.quiet(f"After “{view.prompt}”.") if view.prompt else ""),
        "predictions": Slot(
            (*this, len(history.samples)), drawn(lambda: watch.predictions(view), prompt=view.prompt), slow=True
        ),
        "gradients": Slot((view.id, len(history.gradients)), lambda: show(*watch.gradient_chart(view))),
        "similarity": Slot(this, drawn(lambda: watch.similarity_chart(*_words_of(at))), slow=True),
        "similarity-note": Slot(this, lambda: watch.similarity_note(view)),
    }


def _words_of(at: At) -> tuple[Any, Any]:
    """The model whose word vectors can be compared, once a run is over."""
    view, registry = at.view, at.page.registry
    if not view.learned or view.tokenizer is None or view.tokenizer.kind != "word":
        return None, None
    if not registry.has(view.id, at.visitor):
        return None, None
    checkpoint = registry.get(view.id, at.visitor)
    return checkpoint.model, checkpoint.tokenizer
