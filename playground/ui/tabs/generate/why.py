"""Why it wrote that: copied pieces of a text, the passages behind the selected words, and the proof."""

from __future__ import annotations

import functools
import html
import math
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, islice
from typing import Any

from ....data import Corpus
from ....figures.influence import effects
from ....influence.proof import rank_correlation
from ....influence.ranking import Passage, Ranked
from ....influence.verbatim import FREQUENT, SOURCES, Copied, Match, SuffixArray, copied
from ....kept import Kept
from ....service.pace import Pace
from ....service.why import ProofJob, Question, SearchJob, by_claim, corpus_of, proofs_of, prove_it, scores_of, search
from ....storage import Checkpoint
from ....words.influence import (
    HINT,
    LITTLE,
    LOWERING,
    PROOFS,
    copied_result,
    copied_sentence,
    passage_result,
    proof_result,
    proof_row,
    ranking_details,
    score_sentence,
    strength,
    times,
)
from ... import theme
from ...chart import chart_place, show
from ...page import Page
from ...panel import Asked, Slot, deed_button, move_button, slot
from ...under_way import left, progress
from .kept import Beginning, pieces
from .selection import Selection

AROUND = 30
"""How many characters are shown on either side."""
MATCHES, RAISING, FALLING = 4, 6, 2
"""How many pieces and passages are shown."""
LETTER = r"[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
"""A letter of a script that puts something between words."""
INSIDE = re.compile(f"(?<={LETTER}){LETTER}")
"""A letter within a word."""

BUTTON = '<button type="button" class="{} why-button" data-do="why" data-reveal="why-title"{}>Why?</button>'
TEMPLATE = f"""<div class="card why-card stays" data-if="why"><div class="line tight">
{slot("why-title", tag="h2", class_="grow")}
{move_button("×", {"why": None}, kind="link close", title="Close", aria_label="Close")}</div>
<div data-slot="why-marks" data-own hidden></div>{slot("why-answer", class_="stack")}
<fieldset class="stack why-passages">{slot("why-passages", class_="stack")}
{slot("why-proof", class_="stack")}{slot("why-proven", class_="stack")}
<div data-if="why_scored">{chart_place("why-scores", height=240, save_name="proofs")}</div>
<details class="why-details"><summary>Details</summary><div class="stack">{slot("why-more", class_="stack")}
{slot("why-try", class_="stack")}{slot("why-copied", class_="stack")}</div></details></fieldset></div>"""

_indexes, _copied = Kept(entries=6, megabytes=500), Kept(entries=64, megabytes=8)


@dataclass(frozen=True)
class Chosen:
    """Some words of a text that a model wrote."""

    text: Beginning
    """The whole text."""
    first: int
    last: int
    """Indices of the first and the last selected token among the written ones."""

    @classmethod
    def read(cls, sent: Any, page: Page, checkpoint: Checkpoint) -> Chosen:
        """Read the selection that a browser sent. Raises ValueError."""
        text = Beginning.read(sent, page.limits, checkpoint)
        first, last = (sent.get(name) for name in ("first", "last"))
        if not (type(first) is type(last) is int and 0 <= first <= last < len(text.tokens)):
            raise ValueError("Select some words of the text first")
        return cls(text, first, last)

    def question(self, page: Page, model_id: str, checkpoint: Checkpoint) -> tuple[Question, Corpus]:
        """The question for a search, and the training text to search. Raises ValueError if that text is unknown."""
        known, corpus = corpus_of(page.board, checkpoint)
        given = len(self.text.prompt)
        ids = [*self.text.prompt, *self.text.tokens[: self.last + 1]]
        cut = max(given + self.first - 2 * checkpoint.config.context_length, 0)
        question = Question(model_id, checkpoint.history.last_step, tuple(ids[cut:]), given + self.first - cut, known)
        return question, corpus


class Why:
    """The handlers for questions on this page."""

    def __init__(self, page: Page):
        self._page = page
        page.panels.act("why", self.ask, slow=True)
        page.panels.act("prove", self.prove, slow=True)
        page.panels.act("stop-why", self.stop)

    def _read(self, asked: Asked, sent: Any) -> tuple[str, Checkpoint, Chosen]:
        model_id = Selection.read(asked.selection).model
        checkpoint = self._page.registry.get(model_id, asked.visitor)
        return model_id, checkpoint, Chosen.read(sent, self._page, checkpoint)

    def ask(self, asked: Asked) -> dict[str, Any]:
        """Open the panel for these words, and begin the search; if it cannot begin, show why instead."""
        sent = asked.selection.get("words")
        model_id, checkpoint, chosen = self._read(asked, sent)
        refused = ""
        try:
            question, _ = chosen.question(self._page, model_id, checkpoint)
            job = _job(self._page, asked.visitor, question)
            if job is None or job.state == "failed":
                share = self._page.share_of(asked.request, asked.visitor)
                search(self._page.board, asked.visitor, question, share=share)
        except ValueError as problem:
            refused = str(problem)
        return {"move": {"why": {**sent, "refused": refused}}}

    def prove(self, asked: Asked) -> None:
        """Train without the ticked passages."""
        model_id, checkpoint, chosen = self._read(asked, asked.selection.get("why"))
        question, _ = chosen.question(self._page, model_id, checkpoint)
        job = _job(self._page, asked.visitor, question)
        if job is None or job.result is None:
            raise ValueError("The search behind this proof is gone. Press Why? again")
        shown = job.result.raising[:RAISING]
        ticked = tuple(each for i, each in enumerate(shown) if asked.selection.get(f"passage-{i}") is True)
        share = self._page.share_of(asked.request, asked.visitor)
        prove_it(self._page.board, asked.visitor, question, ticked, share=share)

    def stop(self, asked: Asked) -> None:
        """Stop the running search or proof."""
        for kind in (SearchJob, ProofJob):
            self._page.board.stop(asked.visitor, kind=kind)

    def slots(self, asked: Asked, model_id: str, checkpoint: Checkpoint, sent: Any) -> tuple[dict[str, Slot], bool]:
        """The panel's slots for the selected words, and whether there are proofs to compare."""
        if not isinstance(sent, dict):
            return {"why-marks": Slot(None, lambda: None)}, False
        page, visitor = self._page, asked.visitor
        chosen = Chosen.read(sent, page, checkpoint)
        about = (model_id, checkpoint.history.last_step, chosen)
        title = _title(checkpoint, chosen)
        key = tuple(chosen.text.prompt), tuple(chosen.text.tokens)

        try:
            known = chosen.question(page, model_id, checkpoint)
        except ValueError:  # the panel says so once
            known = None

        def found() -> tuple[Copied, Corpus]:
            corpus = (known or chosen.question(page, model_id, checkpoint))[1]
            return _copied.get(key, lambda: _compare(checkpoint, corpus, chosen), owner=checkpoint.model), corpus

        job = _job(page, visitor, known[0]) if known else None
        ranked, searching = job and job.result, job is not None and job.active
        slots = {
            "why-title": Slot(title, lambda: html.escape(title)),
            "why-answer": Slot(
                (*about, ranked is not None, searching),
                lambda: _answer_html(*found(), checkpoint, chosen, ranked, searching=searching),
                slow=True,
            ),
            "why-copied": Slot(about, lambda: _copied_html(*found(), checkpoint, chosen), slow=True, echoes=True),
            "why-marks": Slot(about, lambda: _marks(checkpoint, chosen, found()[0]), slow=True),
        }
        if known is None:
            nothing = dict.fromkeys(
                ("why-passages", "why-proof", "why-proven", "why-more", "why-try"), Slot(None, lambda: "")
            )
            return slots | nothing, False
        question, corpus = known
        proofs = proofs_of(page.board, visitor, model_id)
        going = next((each for each in page.board.of(visitor, kind=ProofJob) if not each.settled), None)
        failed = page.board.failed(visitor, kind=ProofJob)
        mine = [each for each in proofs if each.question == question]
        refused = sent.get("refused") or ""
        state = job and (job.id, job.version), refused
        ready = ranked is not None and bool(ranked.raising)

        @functools.cache
        def folded() -> bool:
            return ready and _unexplained(*found(), checkpoint, chosen)

        @functools.cache
        def passages() -> tuple[str, str]:  # above the fold and in it
            if ranked is None:
                return _search_html(job, refused), ""
            first, others = _ranked_html(ranked, question, corpus)
            return ("", f"{theme.quiet(LITTLE)}{first}{others}") if folded() else (first, others)

        def proof(*, inside: bool) -> str:
            return _proof_html(going, failed, checkpoint, page.board.pace) if ready and inside == folded() else ""

        marks = *about, ready, going and (going.id, going.version), failed and failed.id
        slots |= {
            "why-passages": Slot((*about, state), lambda: passages()[0], slow=ready),
            "why-more": Slot((*about, ranked is None), lambda: passages()[1], slow=ready),
            "why-proof": Slot(marks, lambda: proof(inside=False), slow=ready),
            "why-try": Slot(marks, lambda: proof(inside=True), slow=ready),
        }
        slots["why-proven"] = Slot((len(mine), ready), lambda: _proven_html(mine, job, corpus) if ready else "")
        predicted, actual = scores_of(proofs)
        score = rank_correlation(predicted, actual)
        scored = ready and not math.isnan(score)
        drawn = lambda: show(effects(predicted, actual), score_sentence(len(actual), score)) if scored else None  # noqa: E731
        slots["why-scores"] = Slot((len(proofs), scored), drawn)
        return slots, scored


def _job(page: Page, visitor: str, question: Question) -> SearchJob | None:
    """The latest search for this question."""
    jobs = [job for job in page.board.of(visitor, kind=SearchJob) if job.question == question]
    return jobs[-1] if jobs else None


def _title(checkpoint: Checkpoint, chosen: Chosen) -> str:
    said = checkpoint.tokenizer.decode(chosen.text.tokens[chosen.first : chosen.last + 1])
    return f"Why “{_shortened(said)}”?"


def _shortened(text: str) -> str:
    """A selection on one line, cut if it is long."""
    text = text.strip().replace("\n", "⏎") or "blank"
    return text if len(text) <= AROUND else f"{text[:AROUND]}…"


def _compare(checkpoint: Checkpoint, corpus: Corpus, chosen: Chosen) -> Copied:
    learned, begun = corpus.learned(), checkpoint.tokenizer.decode(chosen.text.prompt)
    index = _indexes.get(corpus.sha256, lambda: SuffixArray(learned.text), owner=checkpoint.model)
    return copied(index, _spelled(checkpoint, chosen)[0], learned.held_out, begun=begun)


def _spelled(checkpoint: Checkpoint, chosen: Chosen) -> tuple[str, list[int]]:
    """The text, and where each of its tokens ends."""
    parts = pieces(checkpoint.tokenizer, chosen.text.prompt, chosen.text.tokens)
    return "".join(parts), list(accumulate(map(len, parts)))


def _selected(found: Copied, checkpoint: Checkpoint, chosen: Chosen) -> tuple[str, Match | None, list[tuple[int, int]]]:
    """The selection, without blanks around its words; and the longest copied piece that holds it, with the first and
    last token of its whole words."""
    text, ends = _spelled(checkpoint, chosen)
    start, end = _inked(text, ends[chosen.first - 1] if chosen.first else 0, ends[chosen.last])
    around = [match for match in found.matches if match.start <= start and end <= match.end]
    held = max(around, key=lambda match: match.end - match.start, default=None)
    if held is None:
        return text[start:end], None, []
    first, last = held.start, held.end
    while first < start and INSIDE.match(text, first):
        first += 1
    while last > end and INSIDE.match(text, last):
        last -= 1
    first, last = _inked(text, first, last)
    return text[start:end], held, [(bisect_right(ends, first), bisect_left(ends, last))]


def _inked(text: str, start: int, end: int) -> tuple[int, int]:
    """Part of a text without the blanks at its ends, unless it has nothing else."""
    said = text[start:end]
    return (end - len(said.lstrip()), start + len(said.rstrip())) if said.strip() else (start, end)


def _marks(checkpoint: Checkpoint, chosen: Chosen, found: Copied) -> dict[str, Any]:
    """First and last token of the copied piece that explains the selection, and of the selection, for the text."""
    _, held, piece = _selected(found, checkpoint, chosen)
    return {"copied": piece if found.explains(held) else [], "asked": [chosen.first, chosen.last]}


# ---- HTML ------------------------------------------------------------------------------------------------------------


def _answer_html(
    found: Copied, corpus: Corpus, checkpoint: Checkpoint, chosen: Chosen, ranked: Ranked | None, *, searching: bool
) -> str:
    """For a piece that the model knows by heart, its source; for all others what the search found, once it is over."""
    text, (selected, held, _) = corpus.learned().text, _selected(found, checkpoint, chosen)
    if not found.explains(held):
        if searching:
            return ""
        count = text.count(selected) if selected else 0
        return theme.result(passage_result(_shortened(selected), count, ranked))
    hint = theme.quiet(HINT) if ranked is not None and ranked.raising else ""
    source = _source(held.sources[0], held.end - held.start, text, selected)
    return theme.result(copied_result(found, held)) + source + hint


def _unexplained(found: Copied, corpus: Corpus, checkpoint: Checkpoint, chosen: Chosen) -> bool:
    """Whether the selection occurs so often that no single passage explains it: passages and proof are folded away."""
    selected, held, _ = _selected(found, checkpoint, chosen)
    return bool(selected) and not found.explains(held) and corpus.learned().text.count(selected) >= FREQUENT


def _copied_html(found: Copied, corpus: Corpus, checkpoint: Checkpoint, chosen: Chosen) -> str:
    """How much of the text is copied: its longest pieces, or first the places of the selection if none holds that."""
    text, (selected, held, _) = corpus.learned().text, _selected(found, checkpoint, chosen)
    parts = [f'<h3>How much is copied?</h3><p class="num">{html.escape(copied_sentence(found))}</p>']
    if held is None and selected:
        places = islice(re.finditer(re.escape(selected), text), SOURCES)
        parts += [_source(each.start(), len(selected), text) for each in places]
    for each in sorted(found.matches, key=lambda match: (match is not held, match.start - match.end))[:MATCHES]:
        parts += [
            _source(each.sources[0], each.end - each.start, text),
            theme.quiet(f"The whole shaded piece occurs {times(each.count)}."),
        ]
    return "".join(parts)


def _source(start: int, length: int, text: str, selected: str = "") -> str:
    """A piece of the training text with a few words before and after it; marked as a whole, or only the selection."""
    piece, end = text[start : start + length], start + length
    return _quoted(text[max(start - AROUND, 0) : start], _shown(piece, selected or piece), text[end : end + AROUND])


def _quoted(before: str, piece: str, after: str) -> str:
    """A piece of a text, in HTML; what is around it begins and ends with whole words."""
    before = f"… {before.partition(' ')[2] or before}" if len(before) >= AROUND else before
    after = f"{after.rpartition(' ')[0] or after} …" if len(after) >= AROUND else after
    return f'<p class="why-source" dir="auto"><samp>{_shown(before)}<b>{piece}</b>{_shown(after)}</samp></p>'


def _shown(text: str, selected: str = "") -> str:
    """A text as HTML; the selection is marked wherever it occurs, or else the longest run of its words that does."""
    parts = re.split(rf"(?<!{LETTER})({re.escape(selected)})(?!{LETTER})", text) if selected else [text]
    if len(parts) == 1:
        there = [*re.finditer(r"\w+", text)]
        run = SequenceMatcher(None, re.findall(r"\w+", selected), [word[0] for word in there]).find_longest_match()
        if run.size > 1:  # a single word is no trace of several
            start, end = there[run.b].start(), there[run.b + run.size - 1].end()
            parts = [text[:start], text[start:end], text[end:]]
    parts = [html.escape(part.replace("\n", "⏎")) for part in parts]
    return "".join(f"<mark>{part}</mark>" if i % 2 else part for i, part in enumerate(parts))


def _search_html(job: SearchJob | None, refused: str) -> str:
    """The search in progress, or a button that begins it."""
    if job is None or job.state == "failed":
        said = theme.quiet(refused or (job.message if job else ""))
        button = deed_button(SearchJob.BUTTON, "why", kind="ghost why-again")
        return f'<div class="line">{button}{said}</div>'
    return _under_way(job, "Reading the training text …", job.time_left)


def _ranked_html(ranked: Ranked, question: Question, corpus: Corpus) -> tuple[str, str]:
    """The first passage, which is ticked; and all others and how far to trust them."""
    if not ranked.raising:
        return "", ""
    raising, beside_first = [], lambda each: theme.quiet(strength(each.effect, ranked.raising[0].effect))
    for i, each in enumerate(ranked.raising[:RAISING]):
        ticked, beside = ("", beside_first(each)) if i else (" checked", "")
        box = f'<input type="checkbox" data-field="passage-{i}"{ticked} aria-label="Remove passage {i + 1}">'
        number = f" {i + 1}" * bool(i)  # the first stands alone
        shown = _passage(each, question, corpus) + beside
        raising.append(f'<label class="why-passage"><span>{box}{number}</span><div>{shown}</div></label>')
    lowering = [_passage(each, question, corpus) + beside_first(each) for each in ranked.lowering[:FALLING]]
    lowered = [theme.quiet(LOWERING), *lowering] if lowering else []
    others = ["<h3>More passages</h3>" * bool(raising[1:] + lowered), *raising[1:], *lowered]
    return raising[0], "".join(others) + theme.quiet(ranking_details(ranked))


def _selection(question: Question, corpus: Corpus) -> str:
    return corpus.tokenizer.decode(list(question.ids[question.first :])).strip()


def _passage(each: Passage, question: Question, corpus: Corpus) -> str:
    tokens, decode = corpus.train, corpus.tokenizer.decode

    def part(start: int, end: int) -> str:
        return decode([token for token in tokens[max(start, 0) : end].tolist() if token >= 0])

    around = 0 if corpus.documents else AROUND  # documents have no neighbours
    start, end = each.places[0]
    before, after = part(start - around, start)[-AROUND:], part(end, end + around)[:AROUND]
    n = len(each.places)
    copies = theme.quiet(f"This passage occurs {times(n)} in the training text.") if n > 1 else ""
    return _quoted(before, _shown(part(start, end), _selection(question, corpus)), after) + copies


def _under_way(job: SearchJob | ProofJob, doing: str, seconds: float | None) -> str:
    view = job.view()
    stop = deed_button("Stop", "stop-why", kind="link", disabled=view.state == "stopping")
    return f'<div class="why-bar">{progress(view, view.done, f"{doing}{left(seconds)}")}{stop}</div>'


def _proven_html(proofs: list[ProofJob], job: SearchJob, corpus: Corpus) -> str:
    """What the last claim's proofs show, what the model says with and without its passages, and all claims so far."""
    if not proofs:
        return ""
    last, question, claims = proofs[-1], proofs[-1].question, by_claim(proofs)
    between = " " * (corpus.tokenizer.kind == "word")
    begun = corpus.tokenizer.decode(list(question.ids[: question.first]))[-AROUND:] + between
    these = "these passages" if len(last.passages) > 1 else "this passage"
    says = {"With all passages it writes": last.result.said, f"Without {these} it writes": last.result.trial.said}
    texts = "".join(f"{theme.quiet(when)}{_quoted(begun, _shown(text), '')}" for when, text in says.items())
    number_of = {each.places: i for i, each in enumerate(job.result.raising, 1)}
    numbers = lambda proof: sorted(number_of.get(each.places, 0) for each in proof.passages)  # noqa: E731
    trials = lambda claim: [each.result.trial for each in claim]  # noqa: E731
    same, removed = next(each for each in claims if last in each), sum(len(each.places) for each in last.passages)
    selected = _shortened(_selection(question, corpus))
    said = theme.result(proof_result(trials(same), last.result.before, numbers(last), removed, selected))
    most = max(each.result.predicted for each in proofs)
    rows = [proof_row(numbers(each[0]), each[0].result.predicted / most, trials(each)) for each in claims]
    return said + texts + (theme.table(PROOFS, rows, save="proofs-so-far") if len(rows) > 1 else "")


def _proof_html(going: ProofJob | None, failed: ProofJob | None, checkpoint: Checkpoint, pace: Pace) -> str:
    if going is not None and going.active:
        steps = 2 * going.question.step
        doing = f"Training twice: step {round(going.view().done * steps):,} of {steps:,}"
        return _under_way(going, doing, going.left(pace.seconds))
    said = theme.notice(failed.message, "error") if failed is not None else ""
    does = "This trains two models: one without the ticked passages, one without as many random passages."
    if checkpoint.training is not None:
        does += f" It takes {theme.about(ProofJob.seconds(checkpoint, pace.seconds))}{' (a guess)' * pace.guesses}."
    return f'{said}<div class="line">{deed_button(ProofJob.BUTTON, "prove", kind="ghost")}{theme.quiet(does)}</div>'
