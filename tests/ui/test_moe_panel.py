"""The pair panel is one state of the server: what it shows at first, while both are trained, and after; the form."""

import re

from playground.data import corpus_from_text
from playground.service import views
from playground.service.comparisons import ComparisonJob
from playground.service.pace import Pace
from playground.service.runs import OWN_TEXT, Source
from playground.ui.forms import pair as form
from playground.ui.forms import run
from playground.ui.tabs.moe import both, selection, training, verdict
from tests.service.test_comparisons import spec

from .panels import PageCaller
from .runs import TEXT, small_limits, until

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
    monkeypatch.setattr(both, "pair_table", None)
    page = Visit(served, "olga")
    page.look()
    registry = page.board.registry
    dense, moe = (registry.get(model_id, None) for model_id in SHIPPED)
    known = views.pair_of(SHIPPED[0], dense, SHIPPED[1], moe, recorded=True).verdict
    assert page.text("headline") == "No difference visible after 1,500 steps."
    assert "1 seed · 1,500 steps · recorded" in page.text("about")
    assert f"{abs(known.difference):.4f}" in page.text("numbers") and f"± {known.margin:.4f}" in page.text("numbers")
    bars = page.slots["interval"]["figure"]["data"][1]
    assert bars["error_x"]["array"] == [known.margin]
    assert f"{moe.config.n_parameters / dense.config.n_parameters:.1f} ×" in page.text("facts")
    assert "1.0 ×" in page.text("facts") and re.search(r"0\.\d+ × +the training speed|1\.\d ×", page.text("speed"))
    assert not {"routing-text", "favourites", "table"} & page.slots.keys()
    assert "Train three" not in str(page.slots) and "Student" not in str(page.slots)
    assert all(said in page.look(details=True)["details"] for said in ("Student", "Train three"))


def test_a_comparison_is_followed_found_again_and_nobody_elses(served):
    page, other = Visit(served, "gina"), Visit(served, "hans")
    page.look()
    status, answer = page.train(experts_per_token=8)
    assert status == 200 and "cannot use 8" in answer and "notice-error" in answer, "beside the form"
    assert not page.board.of(page.visitor, kind=ComparisonJob)
    status, answer = page.train(steps=400)
    assert status == 200, answer
    until(lambda: page.job().state == "training")
    assert verdict.interval(page.job().view())[0], "its place stays while both train"
    assert "Stop" in page.bar.look()["stop"] and "of 400" in page.bar.slots["bar"] and page.news()["pause"]
    assert page.look() and page.text("headline") == "Training both …"
    assert "deleted" not in page.look(breaking=True)["breaking-note"], "its models are not there yet"
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
    # any other two, and back
    alone.look(pair=None, dense="shipped-stories", mixture=SHIPPED[1])
    assert alone.text("headline").startswith("No verdict") and "same text" in alone.text("remarks")
    alone.look(pair=" ".join(SHIPPED), dense=None, mixture=None)
    assert alone.text("headline").startswith("No difference")
    # the load of the same pair without balance stands beside the first one's, whichever is shown
    alone.look(pair=" ".join(ids.values()), loads=True)
    assert alone.slots["load-balanced"] and not alone.slots["load-unbalanced"] and not alone.slots["loads-headline"]
    assert "without balance" in alone.slots["loads-train"] and alone.text("loads-usage").count("%") == 1
    alone.do("train_again", balance="none")
    until(lambda: alone.job().settled)
    for pair in (ids, alone.job().model_ids):
        alone.look(pair=" ".join(pair.values()))
        axes = [alone.slots[name]["figure"]["layout"]["xaxis"] for name in ("load-balanced", "load-unbalanced")]
        assert axes[0] == axes[1]
        scales = [alone.slots[name]["figure"]["data"][0]["showscale"] for name in ("load-balanced", "load-unbalanced")]
        assert scales == [False, True] and "with balance," in alone.text("loads-usage")
        assert not alone.slots["loads-train"] and "balance" in alone.slots["loads-headline"]
        assert ("card above" in alone.slots["loads-note"]) == (pair is not ids)
    # the recorded pair is too long to be trained again here
    assert "First press Train both" in alone.look(pair=" ".join(SHIPPED))["loads-note"]
    assert alone.slots["load-unbalanced"] is None


def test_nonsense_is_refused_in_words(served):
    page = Visit(served, "nina")
    for at in (-1, 9**30, "0", [0], [-1, 4], [1.5, 0], {}):
        body = {"selection": {"routing": True, "breaking": True, "worth": True, "model": "shipped-stories"}}
        clicked = {"slot": "expert-costs", "index": at, "trace": at}
        status, answer = page.post("view/moe", **body, clicked=clicked)
        assert status in (200, 400) and "problem" in answer
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
    assert f"{here.matched().counted[0]:,}" in total and "different tokens" not in total


def test_a_button_of_the_panel_counts_as_the_page_of_its_visitor(served, monkeypatch):
    page, shares = Visit(served, "rosa"), []
    monkeypatch.setattr(page.board, "compare", lambda visitor, spec, share: shares.append(share))
    page.do("train_again", seeds=3)
    loads = (d for d in page.caller.config["dependencies"] if any(event == "load" for _, event in d["targets"]))
    page.caller.post(next(d["id"] for d in loads if d["backend_fn"]), [page.visitor])
    page.do("train_again", seeds=3)
    assert [share.split()[-1] for share in shares] == ["programs", "pages"]
