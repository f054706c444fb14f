"""The pair panel is one state of the server: its verdict, table and form, and folds with the model's own numbers."""

import dataclasses
import html
import math
import re
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES, corpus_from_text
from playground.data.tokenizers import CharTokenizer
from playground.figures.parts import part_map
from playground.inspection.favourites import favourites
from playground.inspection.routing import routing_of
from playground.model import ModelConfig, Transformer
from playground.service import views
from playground.service.comparisons import ComparisonJob
from playground.service.limits import LOCAL
from playground.service.models import Registry
from playground.service.pace import Pace
from playground.service.runs import OWN_TEXT, Source
from playground.service.texts import unseen
from playground.storage import Checkpoint
from playground.training import History, LoadMeasured
from playground.training.verdict import student_t
from playground.ui.forms import pair as form
from playground.ui.forms import run
from playground.ui.panel import Asked, _made
from playground.ui.tabs.moe import pair_panel, selection, table, training, verdict
from playground.ui.tabs.moe.table import pair_table, training_speeds, two_digits
from playground.ui.tabs.moe.texts import text_for
from tests.figures.decoded import numbers_of
from tests.service.test_comparisons import spec
from tests.ui.runs import ended, house

from .panels import PageCaller, page_of
from .runs import ANNA, TEXT, small_limits, until

SHIPPED = selection.SHIPPED


class Visit(PageCaller):
    """An open page of a visitor."""

    panel = "moe"

    def train(self, **changes) -> tuple[int, str]:
        """What pressing Train both with this form would send."""
        given = {"learn": "text", "text": TEXT, "n_experts": 4, "context_length": 16, "n_layers": 1, "seeds": 1}
        given |= {"d_model": 16, "n_heads": 2, "steps": 20, "eval_every": 5, "tokenizer": "char"}
        return self.caller.form("moe_form", self.visitor, **{**given, **changes})

    def job(self) -> ComparisonJob:
        return self.board.of(self.visitor, kind=ComparisonJob)[-1]


def test_the_recorded_pair_opens_with_its_verdict_and_works_out_nothing_that_is_folded(served, monkeypatch):
    monkeypatch.setattr(table, "pair_table", None)
    page = Visit(served, "olga")
    page.look()
    registry = page.board.registry
    dense, moe = (registry.get(model_id, None) for model_id in SHIPPED)
    known = views.pair_of(SHIPPED[0], dense, SHIPPED[1], moe).verdict
    assert page.text("headline") == "No difference visible after 1,500 steps."
    assert "1 seed · 1,500 steps · recorded" in page.text("about")
    assert f"{abs(known.difference):.4f}" in page.text("numbers") and f"± {known.margin:.4f}" in page.text("numbers")
    bars = page.slots["interval"]["figure"]["data"][1]
    assert bars["error_x"]["array"] == [known.margin]
    assert f"{moe.config.n_parameters / dense.config.n_parameters:.1f} ×" in page.text("facts")
    assert "arithmetic" not in page.text("facts"), "it is the same for both"
    assert re.search(r"0\.\d+ × +the training speed|1\.\d ×", page.text("speed"))
    assert page.slots["curve"]["aloud"] and page.slots["curve"]["figure"]["layout"]["yaxis"]["type"] == "log"
    assert not {"routing-text", "favourites", "table"} & page.slots.keys()
    assert "Student" in page.slots["details"] and "Train three" not in page.slots["details"], "it takes too long here"


def test_a_comparison_is_followed_found_again_and_nobody_elses(served):
    page, other = Visit(served, "gina"), Visit(served, "hans")
    page.look()
    status, answer = page.train(steps=400)
    assert status == 200, answer
    until(lambda: page.job().state == "training")
    assert verdict.interval(page.job().view())[0], "its place stays while both train"
    assert "Stop" in page.bar.look()["stop"] and "of 400" in page.bar.slots["bar"] and page.news()["pause"]
    assert not page.look(loads=True)["loads-train"] and page.text("headline", "choice") == "Training both …"
    made = page.look(breaking=True, experts=True)
    notes = made["breaking-note"], made["experts-note"]
    assert all("are training" in note for note in notes), "its models are not there yet"
    assert "breaking-result" not in page.slots, "of others it stays, unseen, so that nothing moves"
    page.look(breaking=False)
    other.do("stop_comparison")
    assert page.job().active and "recorded" in (other.look() and other.text("about"))
    page.do("stop_comparison")
    until(lambda: page.job().settled)
    assert not any(page.bar.look().values()) and page.news()["pause"] is None
    page.look()
    assert page.text("headline").startswith("No verdict") and "Stopped" in page.text("remarks")
    # a verdict, and a reload
    page.train()
    until(lambda: page.job().settled)
    assert page.news()["made"] == {}, "the model that is chosen on all tabs stays"
    made = page.look()
    assert not made["experts-note"] and "<table" in made["favourites"], "the part is drawn once its models are there"
    chosen = Visit(served, "gina", page.job().model_ids["moe"])
    for seen in (chosen, Visit(served, "gina")):
        seen.look()
        view = page.job().view()
        assert ("±" in seen.text("numbers")) is view.verdict.margin_decides and "1 seed" in seen.text("about")
        assert seen.selection["mixture"] == page.job().model_ids["moe"]
    assert chosen.text("choice").count("Comparison") == 2, "its pairs, and the recorded one"


def test_the_chosen_model_brings_its_pair_along(served):
    page = Visit(served, "kira")
    page.board.compare(page.visitor, spec())
    until(lambda: page.job().settled)
    ids = page.job().model_ids
    for pair in ((ids["dense"], ids["moe"]), SHIPPED):
        for model in pair:
            chosen = Visit(served, "kira", model)
            chosen.look()
            assert (chosen.selection["dense"], chosen.selection["mixture"]) == pair
    alone = Visit(served, "kira", "shipped-stories")
    alone.look()
    assert alone.selection["mixture"] == ids["moe"]
    own = ids["moe"]
    for alone.model, pair in ((SHIPPED[1], SHIPPED[1]), ("shipped-induction", own), ("shipped-stories", own)):
        alone.look()
        assert alone.selection["mixture"] == pair, "an own pair comes back, the recorded one does not"
    # the same pair without balance fills one fold, and nothing else of the tab
    alone.look(loads=True)
    (alike,) = alone.slots["load"]["figure"]["data"]
    assert alike["name"] == "with balance" and "busiest" in alone.text("loads-result")
    assert "without balance" in alone.slots["loads-train"]
    before = {name: alone.text(name) for name in ("headline", "about", "numbers", "choice")}
    alone.do("train_again")
    assert "Stop" in alone.look()["loads-train"] or alone.job().settled
    until(lambda: alone.job().settled)
    alone.look()
    assert [each["name"] for each in alone.slots["load"]["figure"]["data"]] == ["with balance", "without balance"]
    assert "with it" in alone.text("loads-result") and not alone.slots["loads-train"]
    assert before == {name: alone.text(name) for name in before} and alone.selection["mixture"] == ids["moe"]
    assert alone.job().learned == [alone.job().model_ids["moe"]], "a dense model has no experts to balance"
    # the recorded pair is too long to be trained again here
    assert "first press" in alone.look(pair=" ".join(SHIPPED))["loads-note"] and not alone.slots["loads-train"]


def test_nonsense_is_refused_in_words(served):
    page = Visit(served, "nina")
    wild = {name: ["?"] for name in selection.Selection.model_fields} | {"model": "shipped-stories"}
    status, answer = page.post("view/moe", selection=wild)
    assert status == 200 and answer["selection"]["mixture"] == SHIPPED[1]
    status, answer = page.post(
        "view/moe", selection={"model": "x", "pair": "<b> <i>", "dense": "../..", "mixture": "y"}
    )
    assert status == 200 and answer["selection"]["dense"] == SHIPPED[0]


# ---- the form --------------------------------------------------------------------------------------------------------


def test_the_same_text_has_the_same_baselines_and_parameters_on_both_tabs():
    limits, text = small_limits(), "It was a dark and stormy night; the rain fell in torrents. " * 300
    values = {"source": OWN_TEXT, "own_kind": "paste", "text": text, "upload": None, "tokenizer": "char"}
    own = form.own_in(values, limits)
    source = Source(OWN_TEXT, text=text)
    here = form.comparison_spec(form.first_values(OWN_TEXT, own) | {"equal": "active"}, source, limits, own)
    size = run.best_size(own)
    there = run.run_spec(run.base_values(size, OWN_TEXT, own) | {"source": OWN_TEXT, "prompt": ""}, source, limits)
    of = [
        (each.training.eval_windows, config.context_length, each.tokenizer)
        for each, config in ((here, here.moe), (there, there.model))
    ]
    assert of[0] == of[1]
    corpus = corpus_from_text(text, "char")
    for config in ("dense", "moe"):  # what the form says is what comes out
        said, made = (getattr(here.matched(vocab), config).n_parameters for vocab in (None, corpus.vocab_size))
        assert said == made
    _, _, total = training.words(values | form.first_values(OWN_TEXT, own) | {"equal": "active"}, limits, Pace())
    assert f"{here.matched().counted[0]:,}" in total


def test_a_button_of_the_panel_counts_as_the_page_of_its_visitor(served, monkeypatch):
    page, shares = Visit(served, "rosa"), []
    page.board.compare(page.visitor, spec(seeds=1))
    until(lambda: page.job().settled)
    page.look()
    monkeypatch.setattr(page.board, "compare", lambda visitor, spec, share: shares.append(share))
    page.do("train_again", seeds=3)
    loads = (d for d in page.caller.config["dependencies"] if any(event == "load" for _, event in d["targets"]))
    page.caller.post(next(d["id"] for d in loads if d["backend_fn"]), [page.visitor])
    page.do("train_again", seeds=3)
    assert [share.split()[-1] for share in shares] == ["programs", "pages"]


DIALECTS = LANGUAGES["dialects"]
LETTERS = CharTokenizer.from_text("".join(dict.fromkeys(DIALECTS.graph.texts)) + "<>&")
MIXTURE = ModelConfig(
    vocab_size=LETTERS.vocab_size, context_length=32, n_layers=2, d_model=16, n_heads=2, n_experts=4, d_expert=8,
    init_std=0.4, positions="rotary",
)  # fmt: skip


def mixture(about: dict | None = None, **changes) -> Checkpoint:
    history = History()
    history.add(LoadMeasured(5, 0.0, [[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]))
    model = Transformer(MIXTURE.replace(**changes), seed=1)
    return Checkpoint(model, LETTERS, history, "mixture", {"prompt": "the wind"} if about is None else about)


CARD = {"headline", "numbers", "details", "interval", "facts", "speed", "remarks", "curve", "table"}


class Tab:
    """The pair panel with some models of Anna's, as a page would ask it."""

    def __init__(self, **models: Checkpoint):
        registry = Registry(LOCAL)
        self.ids = {name: registry.add(ANNA, checkpoint) for name, checkpoint in models.items()}
        self.page = page_of(registry)

    def look(self, mixture: str = "dialects", clicked: dict | None = None, **chosen) -> dict:
        """What the panel shows for a selection: slot → content, and the selection itself as `chosen`."""
        ids = {"dense": self.ids.get("dense", ""), "mixture": self.ids.get(mixture, mixture)}
        known = {tuple(ids.values()): "the pair"}
        with patch.object(selection, "pairs", lambda page, visitor: known):
            shown = pair_panel.show_pair(self.page, Asked(ANNA, ids | chosen, clicked))
        folded = shown.slots.keys() - CARD
        return {name: _made(shown.slots[name]) for name in folded} | {"chosen": shown.selection}


@pytest.fixture(scope="module")
def tab() -> Tab:
    return Tab(
        dialects=mixture({"prompt": "the wind", "language": "dialects"}),
        plain=mixture({}),
        dense=mixture(n_experts=0),
        all_experts=mixture({"language": "dialects"}, n_experts=2, experts_per_token=2),
    )


def test_the_routing_shown_is_the_models(tab):
    checkpoint, text = mixture(), "the wind <b>&"
    ids = LETTERS.encode(text)
    shown = tab.look(routing=True, loads=True, prompt=text, layer=1, token=6)
    found = routing_of(checkpoint.model, torch.tensor([ids]))
    tokens = shown["routing-text"]
    assert "<b>&</b>" not in tokens and "<script" not in tokens
    spans = re.findall(r'data-token="(\d+)"(.*?)<b>(.*?)</b><i>(\d)</i></button>', tokens)
    assert [html.unescape(s[2]) for s in spans] == list(text.replace(" ", "␣"))
    assert [int(number) for *_, number in spans] == found.experts[1, 0, :, 0].tolist(), "one layer's experts"
    assert [t for t, span in enumerate(spans) if "followed" in span[1]] == [6]
    assert "Token 6 “<bdi>n</bdi>”" in shown["routing-followed"]
    assert shown["routing-headline"].startswith("Repeated tokens keep their main expert ")
    journey = numbers_of(shown["journey"]["figure"]["data"][0]["z"])
    assert journey == pytest.approx(found.dense_weights()[:, 0, 6].numpy(), abs=1e-6)
    assert shown["load"]["summary"].startswith("With balance, the busiest of 4 experts gets 100 % of the load.")


def test_all_folds_read_one_prompt_which_fits_the_model_at_first(tab):
    (prompt,) = {tab.look(**{fold: True})["chosen"]["prompt"] for fold in ("routing", "breaking", "texts")}
    assert prompt.endswith("the wind") and len(LETTERS.encode(prompt)) <= MIXTURE.context_length


def test_a_click_in_the_map_of_costs_chooses_its_expert(tab):
    click = {"slot": "expert-costs", "index": [1, 3]}
    chosen = tab.look(clicked=click, breaking=True, worth=True)["chosen"]
    assert (chosen["layer"], chosen["off"]) == (1, [3])
    with pytest.raises(ValueError, match="the picture"):
        tab.look(clicked={"slot": "expert-costs", "index": [9, 0]}, breaking=True)


def test_bad_choices_are_answered_in_sentences(tab):
    shown = tab.look("plain", routing=True, prompt="")
    assert "is empty" in shown["routing-note"]
    drawn = ("routing-headline", "routing-text", "routing-followed", "journey")
    assert not any(shown[name] for name in drawn), "nothing of another text stays"
    assert "not available" in tab.look("plain", experts=True)["favourites"]["problem"]
    shown = tab.look(breaking=True, prompt="the ", layer=0, off=[0, 1, 2])
    assert "at most 2" in shown["breaking-result"]["problem"] and "at most 2" in shown["breaking-next"]["problem"]
    shown = tab.look("all_experts", breaking=True, prompt="the ", off=[1])
    assert "no other replaces it" in shown["breaking-note"] and "The loss " in shown["breaking-result"]
    wild = tab.look(breaking=True, prompt="the ", layer="0; drop", off=[0, 99, "x"])["chosen"]
    assert wild["layer"] in (0, 1) and wild["off"] is None, "what makes no sense is as it is at first"


def test_each_expert_shows_its_share_and_its_favourites_and_a_random_router_is_unclear(tab):
    favoured = tab.look(experts=True, layer=0)["favourites"]
    windows, words = text_for(tab.page, mixture({"language": "dialects"}))
    ids = windows[:, :-1]
    routed = routing_of(mixture().model, ids).experts[0, ..., 0].flatten().numpy()
    told = [found[:6] for found in favourites(routed, ids.flatten().numpy(), 4)]
    assert any(told) and favoured.count('<td class="words">none') == told.count([]) and words in favoured
    shown = [f"{100 * f.taken / f.count:.0f}\u00a0%" for some in told for f in some]
    assert re.findall(r"<small>(.*?)</small>", favoured) == shown
    shares = [float(x) for x in re.findall(r'data-value="([\d.]+)"', favoured)]
    assert shares == pytest.approx([(routed == expert).mean() for expert in range(4)], abs=1e-6)
    assert "No clear specialisation" in favoured, "its routers have random weights"


def test_an_edit_shows_before_and_after_and_leaves_the_model_alone(tab):
    checkpoint = mixture()
    ids = LETTERS.encode("the ")
    shown = tab.look(breaking=True, worth=True, prompt="the ", layer=1, off=[2])
    before, changed = (numbers_of(trace["x"]) for trace in shown["breaking-next"]["figure"]["data"])
    truth = checkpoint.model(torch.tensor([ids])).logits[0, -1].softmax(0).sort(descending=True).values
    assert before[:4] == pytest.approx(truth[:4].tolist(), abs=1e-5) and changed.tolist() != before.tolist()
    assert "The loss " in shown["breaking-result"]
    assert numbers_of(shown["expert-costs"]["figure"]["data"][0]["z"]).shape == (2, 4)
    unchanged, kept = (
        m.state_dict() for m in (checkpoint.model, tab.page.registry.get(tab.ids["dialects"], ANNA).model)
    )
    assert all(torch.equal(kept[name], tensor) for name, tensor in unchanged.items())


def test_a_cost_within_its_interval_is_in_brackets():
    costs, margins = np.array([[0.1, -0.01], [0.5, 0.0]]), np.array([[0.02, 0.05], [0.1, 0.01]])
    cells = part_map(costs, ["0", "1"], "", margins=margins, layers=(1, 3))["data"][0]
    assert cells["text"] == [["0.100", "(−0.010)"], ["0.500", "(0.000)"]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A whole comparison: the jobs, the job, its view."""
    jobs = house(tmp_path_factory.mktemp("comparison"))
    job = ended(jobs.compare(ANNA, spec()))
    return jobs, job, job.view()


def test_the_difference_along_training_is_that_of_the_losses(finished):
    view = finished[2]
    losses = {
        side: [dict(zip(h.evaluations["step"], h.evaluations["val_loss"])) for h in view.sides[side].histories]
        for side in ("dense", "moe")
    }
    steps = sorted(losses["dense"][0])
    rows = np.array([[m[s] - d[s] for s in steps] for d, m in zip(losses["dense"], losses["moe"])])
    figure, words = verdict.curve(view, "difference")
    drawn = {trace["name"]: numbers_of(trace["y"]) for trace in figure["data"]}
    assert drawn["mean"] == pytest.approx(rows.mean(axis=0), abs=1e-6)
    half = student_t(1) * rows.std(axis=0, ddof=1) / math.sqrt(2)
    assert drawn["95 % interval"] == pytest.approx(rows.mean(axis=0) + half, abs=1e-5)
    assert f"step {steps[-1]}" in words and f"± {half[-1]:.4f}" in words
    figure, _ = verdict.curve(view, "loss")
    names = [trace["name"] for trace in figure["data"] if trace["showlegend"]]
    assert sorted(names) == ["Dense", "MoE"] and len(figure["data"]) == 4  # two seeds each


def test_the_text_that_a_pair_learned_from_is_known_to_all_who_judge_its_models(finished, tmp_path):
    jobs, job, view = finished
    for side in view.sides:
        checkpoint = jobs.registry.get(job.model_ids[side], ANNA)
        assert jobs.source_of(checkpoint) is job.spec.source
        held_out = unseen(job.spec.source, checkpoint)
        assert "last tenth" in held_out.words and unseen(job.spec.source, checkpoint) is held_out, "read once"
        windows, words = text_for(SimpleNamespace(board=jobs), checkpoint)
        assert len(windows) and "last tenth" in words
        with pytest.raises(ValueError, match="not available"):
            text_for(SimpleNamespace(board=house(tmp_path)), checkpoint)


def test_the_verdict_is_shown_with_its_marks_and_in_few_words(finished):
    view = finished[2]
    assert "2 seeds" in verdict.details(view) and len(verdict.differences(view)) == 2
    figure, words = verdict.interval(view)
    assert figure["data"][1]["error_x"]["array"] == [view.verdict.margin] and "by seed" in words
    better = dataclasses.replace(view.verdict, seeds=3, difference=-0.02, margin=0.01)
    assert verdict.headline(dataclasses.replace(view, verdict=better)).startswith("MoE")
    none = dataclasses.replace(view, verdict=None)
    figure, _ = verdict.interval(dataclasses.replace(none, state="training"))
    assert len(numbers_of(figure["data"][0]["x"])) == 2, "where the pairs are so far"
    sides = {side: dataclasses.replace(part, reasons=("diverged",)) for side, part in view.sides.items()}
    assert "diverged" in verdict.headline(dataclasses.replace(none, sides=sides))


def test_the_table_has_each_models_own_numbers(finished):
    jobs, job, view = finished
    models = [jobs.registry.get(model_id, ANNA).model for model_id in job.model_ids.values()]
    html = pair_table(view, speeds := view.speeds)
    assert two_digits(speeds["moe"]) in html
    for model in models:
        assert f"{sum(p.numel() for p in model.parameters()):,}" in html
        assert f"{model.config.flops_per_token():,}" in html
    # records of different hours do not compare: both are timed anew
    timed = training_speeds(*models)
    assert timed["dense"] > 0 and timed["moe"] > 0 and training_speeds(*models) is timed
    assert all(p.grad is None for model in models for p in model.parameters())
    assert [two_digits(speed) for speed in (19737.4, 994, 9.94, 3.14159)] == ["20,000", "990", "9.9", "3.1"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"experts_per_token": 9}, "1.*8"),
        ({"n_experts": 2, "experts_per_token": 4}, "cannot use 4"),
        ({"n_experts": 1}, "2.*32"),
        ({"equal": "beauty"}, "What.*equal"),
        ({"seeds": 99}, "Seeds must"),
        ({"d_expert": 12.5}, "whole number"),
        ({"balance": "hope"}, "Balance must"),
        ({"n_heads": 3}, "not divisible"),
        ({"tokenizer": "gpt2"}, "characters.*words"),
        ({"steps": True}, "Steps.*1"),
    ],
)
def test_bad_settings_are_sentences(changes, complaint):
    values = {**form.first_values(), "equal": "active", **changes}
    with pytest.raises(ValueError, match=complaint):
        form.comparison_spec(values, Source("dialects"), small_limits())


@pytest.mark.parametrize("changes", [
    {}, {"source": "copy"}, {"equal": "flops", "adapts": "moe", "d_ff": 96, "moe_every": 2, "shared_expert": True},
    {"seeds": 2, "steps": 33, "d_model": 48, "dropout": 0.1, "balance": "bias", "activation": "gelu"},
])  # fmt: skip
def test_the_form_can_be_filled_in_again_from_a_comparison(changes):
    source = changes.get("source", "dialects")
    values = {**form.first_values(source), "equal": "active", "source": source, **changes}
    found = form.values_of(form.comparison_spec(values, Source(source), small_limits()))
    assert {name: found[name] for name in values} == values
