"""The page's comparisons: what a pair looks like, its table, its form, and its texts side by side."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from playground.data import Baselines
from playground.model import Transformer
from playground.service.runs import Source
from playground.service.texts import unseen
from playground.service.views import pair_of
from playground.storage import Checkpoint
from playground.training.verdict import Verdict, student_t
from playground.ui.forms import pair as form
from playground.ui.tabs.moe import verdict
from playground.ui.tabs.moe.table import pair_table, training_speeds, two_digits
from playground.ui.tabs.moe.texts import text_for
from tests.figures.decoded import numbers_of
from tests.service.test_comparisons import spec
from tests.ui.runs import ended, house

from .runs import ANNA, small_limits


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
    for part in view.sides.values():
        checkpoint = jobs.registry.get(part.model_id, ANNA)
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
    jobs, _, view = finished
    models = [jobs.registry.get(view.sides[side].model_id, ANNA).model for side in ("dense", "moe")]
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


def test_any_two_models_are_a_pair_judged_only_where_their_losses_compare(finished):
    jobs, _, view = finished
    dense, moe = (jobs.registry.get(view.sides[side].model_id, ANNA) for side in ("dense", "moe"))
    pair = pair_of("a", dense, "b", moe, recorded=False)
    assert pair.verdict is None and "not saved" in pair.withheld and pair.equal == "active"
    other = Checkpoint(dense.model, dense.tokenizer, dense.history, "other", {**dense.about, "text_sha256": "x"})
    assert "learn from" in _fresh(other, moe).withheld
    words = form.comparison_spec({**form.first_values(), "equal": "active"}, Source("dialects"), small_limits())
    assert words.tokenizer == "word"
    # losses of other windows stand each against their own floor, and make no difference
    baselines = Baselines(uniform=3.0, unigram=2.5, bigram=2.0, floor=0.5).to_dict()
    one = dataclasses.replace(dense, about={**dense.about, "text_sha256": "x", "ladder": {**baselines, "floor": 0.3}})
    two = dataclasses.replace(moe, about={**moe.about, "ladder": baselines})
    pair = _fresh(one, two)
    gaps = [f"{one.history.val_loss - 0.3:.4f}", f"{two.history.val_loss - 0.5:.4f}"]
    _, words = verdict.curve(pair, "loss")
    assert all(f"({gap} above" in words for gap in gaps) and "difference" not in verdict.curves(pair)
    html = pair_table(pair)
    assert f"<td>{gaps[0]}</td><td>{gaps[1]}</td>" in html and html.count("not comparable") == 1
    # of the same text, cut alike, both stand against the one floor
    alike = _fresh(dataclasses.replace(dense, about={**dense.about, "ladder": baselines}), two)
    judged = pair_table(dataclasses.replace(alike, verdict=Verdict(-0.0003, 0.0005, 1)))
    assert alike.baselines.floor == 0.5 and "on fresh text: 0.0003 lower" in judged, "as the headline says"


def _fresh(dense: Checkpoint, moe: Checkpoint):
    """The same weights in a model of its own, so that no earlier verdict is found."""
    model = Transformer(dense.config)
    return pair_of("a", dataclasses.replace(dense, model=model), "b", moe, recorded=False)


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
