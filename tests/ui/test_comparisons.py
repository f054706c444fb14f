"""The page's comparisons: what a pair looks like, its table, its form, and its texts side by side."""

from __future__ import annotations

import dataclasses
import json
import math
from html import unescape
from types import SimpleNamespace

import pytest
import torch

from playground.data import Baselines
from playground.figures.wire import numbers_of
from playground.links import letters, text_hash
from playground.model import Transformer
from playground.service.runs import OWN_TEXT, Source
from playground.service.unseen import unseen
from playground.service.views import RunView, pair_of
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.forms import pair as form
from playground.ui.forms import texts
from playground.ui.tabs.moe import pair_picture
from playground.ui.tabs.moe.compare import sum_text
from playground.ui.tabs.moe.linked import pair_letters
from playground.ui.tabs.moe.sidebyside import both_texts, divergence
from playground.ui.tabs.moe.table import decoding_speeds, pair_table, training_speeds, two_digits
from playground.ui.tabs.moe.texts import text_for
from playground.ui.tabs.train import verdict
from tests.service.test_comparisons import TRAINING, house, spec, whole

from .runs import ANNA, small_limits, until


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A whole comparison: the jobs, the job, its view."""
    return whole(tmp_path_factory)


def test_stopping_one_lets_the_other_finish(tmp_path):
    jobs = house(tmp_path)
    job = jobs.compare(ANNA, spec(training=TRAINING.replace(steps=150)))
    until(lambda: job.state == "training")
    job.stop_side("moe")
    until(lambda: job.settled)
    view = job.view()
    assert view.sides["dense"].histories[0].last_step == 150 > view.sides["moe"].histories[0].last_step
    assert view.withheld.startswith("Stopped: MoE after step ") and "both are kept" in view.withheld
    assert len(job.learned) == 2 and view.verdict is None
    assert "as far as they came" in pair_table(view)
    assert pair_picture.is_over(view.sides["moe"], 3) and not pair_picture.is_over(view.sides["dense"], 3)


def test_a_pair_under_way_changes_nothing_that_is_said_of_complete_ones(finished):
    view = finished[2]
    sides = {
        side: dataclasses.replace(part, histories=(*part.histories, part.histories[0]), reasons=("done", "done"))
        for side, part in view.sides.items()
    }
    more = dataclasses.replace(view, sides=sides, seeds=3, state="training")
    assert "mean of 2 seeds" in pair_table(more) and "mean of 3" not in pair_table(more)
    assert pair_picture.differences(more) == pair_picture.differences(view)


def test_a_text_that_is_too_short_fails_with_a_sentence(tmp_path):
    jobs = house(tmp_path)
    job = jobs.compare(ANNA, spec(source=Source("text", text="far too short")))
    until(lambda: job.settled)
    assert job.view().state == "failed" and "tokens" in job.view().message
    assert "notice-error" in pair_picture.status(job.view())


def test_every_axis_puts_the_points_where_they_belong(finished):
    view = finished[2]
    last = {}
    for _, x in pair_picture.X_CHOICES:
        figure, _ = pair_picture.curves(view, x)
        names = [trace["name"] for trace in figure["data"] if trace["showlegend"]]
        assert sorted(names) == ["Dense", "MoE"] and len(figure["data"]) == 4  # two seeds each
        last[x] = max(pair_picture._along(view.sides["moe"], view.sides["moe"].histories[0], x))
    moe = view.sides["moe"]
    assert last["step"] == 12 and last["tokens"] == 12 * 4 * 16
    assert last["flops"] == last["tokens"] * moe.config.flops_per_token(training=True)
    assert last["seconds"] == moe.histories[0].evaluations["seconds"][-1]


def test_the_text_that_a_pair_learned_from_is_known_to_all_who_judge_its_models(finished, tmp_path):
    jobs, job, view = finished
    for part in view.sides.values():
        checkpoint = jobs.registry.get(part.model_id, ANNA)
        assert jobs.source_of(checkpoint) is job.spec.source
        assert "the last tenth of your text" in unseen(jobs.source_of(checkpoint), checkpoint).words
        windows, words = text_for(SimpleNamespace(board=jobs), checkpoint)
        assert len(windows) and "the last tenth of your text" in words
        with pytest.raises(ValueError, match="is not here"):
            text_for(SimpleNamespace(board=house(tmp_path)), checkpoint)


def test_the_verdict_is_shown_with_its_marks(finished):
    view = finished[2]
    assert "over 2 seeds" in pair_picture.verdict(view)
    assert len(pair_picture.differences(view)) == 2
    figure, words = pair_picture.verdict_chart(view)
    assert figure["data"][1]["error_x"]["array"] == [view.verdict.margin] and "by seed" in words


def test_the_table_has_each_models_own_numbers(finished):
    jobs, _, view = finished
    models = [jobs.registry.get(view.sides[side].model_id, ANNA).model for side in ("dense", "moe")]
    speeds = decoding_speeds(*models)
    assert speeds["dense"] > 0 and speeds["moe"] > 0 and decoding_speeds(*models) is speeds
    html = pair_table(view, speeds)
    assert "MoE ÷ dense, or MoE − dense" in html and " nats</td>" in html
    assert "with evaluations, first seed" in html and "FLOPs of training, first seed" in html  # of two
    for model in models:
        assert f"{sum(p.numel() for p in model.parameters()):,}" in html
        assert f"{model.config.flops_per_token():,}" in html
    assert pair_table(view).count("being timed") == 2
    assert pair_table(dataclasses.replace(view, state="training")).count("timed at the end") == 2
    assert pair_table(dataclasses.replace(view, matched=None)).count("being timed") == 4  # nor do old records say it
    # beside records of different hours, both are timed anew, and their times are no ratio
    timed = training_speeds(*models)
    assert timed["dense"] > 0 and timed["moe"] > 0 and training_speeds(*models) is timed
    assert all(p.grad is None for model in models for p in model.parameters())
    assert two_digits(timed["moe"]) in pair_table(view, speeds, timed)
    assert "training, tokens/s, timed here" in pair_table(view, speeds, timed)
    assert "training, tokens/s, recorded while they trained" in html and "decoding, tokens/s, timed here" in html
    assert [two_digits(speed) for speed in (19737.4, 994, 9.94, 3.14159)] == ["20,000", "990", "9.9", "3.1"]
    assert "not comparable" in pair_table(view, speeds, timed) and "not comparable" not in html


def test_any_two_models_are_a_pair_judged_only_where_their_losses_compare(finished):
    jobs, _, view = finished
    dense, moe = (jobs.registry.get(view.sides[side].model_id, ANNA) for side in ("dense", "moe"))
    pair = pair_of("a", dense, "b", moe, recorded=False)
    assert pair.verdict is None and "was not kept" in pair.withheld and pair.equal == "active"
    other = Checkpoint(dense.model, dense.tokenizer, dense.history, "other", {**dense.about, "text_sha256": "x"})
    assert "did not learn from the same text" in _fresh(other, moe).withheld
    words = form.comparison_spec({**form.first_values(), "equal": "active"}, Source("dialects"), small_limits())
    assert words.tokenizer == "word"


def test_losses_of_other_windows_stand_each_against_their_own_floor_and_make_no_difference(finished):
    jobs, _, view = finished
    dense, moe = (jobs.registry.get(view.sides[side].model_id, ANNA) for side in ("dense", "moe"))
    baselines = Baselines(uniform=3.0, unigram=2.5, bigram=2.0, floor=0.5).to_dict()
    one = dataclasses.replace(dense, about={**dense.about, "text_sha256": "x", "ladder": {**baselines, "floor": 0.3}})
    two = dataclasses.replace(moe, about={**moe.about, "ladder": baselines})
    pair = _fresh(one, two)
    gaps = [f"{one.history.val_loss - 0.3:.4f}", f"{two.history.val_loss - 0.5:.4f}"]
    figure, words = pair_picture.curves(pair, y="gap")
    assert f"({gaps[0]} above its floor)" in words and f"({gaps[1]} above its floor)" in words
    assert "cannot be held against each other" in words and not figure["layout"].get("shapes")
    drawn = {trace["name"]: numbers_of(trace["y"])[-1] for trace in figure["data"]}
    assert [drawn["Dense"], drawn["MoE"]] == pytest.approx([float(gap) for gap in gaps], abs=1e-4)
    html = pair_table(pair)
    assert f"<td>{gaps[0]}</td><td>{gaps[1]}</td>" in html and html.count("not comparable") == 3
    assert "One of the two texts has no known floor" in pair_picture.curves(_fresh(one, moe), y="gap")[1]
    # of the same text, cut alike, both stand against the one floor
    alike = _fresh(dataclasses.replace(dense, about={**dense.about, "ladder": baselines}), two)
    assert alike.baselines.floor == 0.5 and pair_table(alike).count("not comparable") == 1
    assert "above the floor" in pair_picture.curves(alike)[1]
    below = dataclasses.replace(two, about={**moe.about, "ladder": {**baselines, "uniform": 99.0, "floor": 90.0}})
    assert ", −8" in pair_picture.curves(_fresh(below, below))[1], "a minus sign, no hyphen"


def _fresh(dense: Checkpoint, moe: Checkpoint):
    """The same weights in a model of its own, so that no earlier verdict is found."""
    model = Transformer(dense.config)
    return pair_of("a", dataclasses.replace(dense, model=model), "b", moe, recorded=False)


def test_the_form_opens_with_a_pair_that_is_exactly_equal():
    values = {**form.first_values(), "equal": "active"}
    matched = form.comparison_spec(values, Source("dialects"), small_limits()).matched()
    assert matched.counted[0] == matched.counted[1]
    text = pair_picture.sum_of(matched)
    assert "exactly equal" in text and f"{matched.counted[0]:,}" in text
    limits = small_limits()
    assert "your text's own number" not in unescape(sum_text(values | {"source": "dialects"}, limits))
    own = unescape(sum_text(values | {"source": "text", "tokenizer": "char"}, limits))
    assert "Counted for 64 different tokens; with your text's own number both change alike." in own


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"experts_per_token": 9}, "must be a whole number from 1 to 8"),
        ({"n_experts": 2, "experts_per_token": 4}, "cannot visit 4 experts when there are only 2"),
        ({"n_experts": 1}, "must be a whole number from 2 to 32"),
        ({"equal": "beauty"}, "What is equal"),
        ({"seeds": 99}, "Seeds must be"),
        ({"d_expert": 12.5}, "whole number"),
        ({"balance": "hope"}, "Balance must be"),
        ({"n_heads": 3}, "not divisible"),
        ({"tokenizer": "gpt2"}, "characters or words"),
        ({"steps": True}, "Steps must be a whole number from 1 to .*, not True"),
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


def test_a_comparison_learns_from_a_paste_a_file_or_the_hub_as_a_run_does(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("a text of one's own " * 50, encoding="utf-8")
    ways = {
        "paste": {"text": "pasted " * 40},
        "upload": {"upload": str(file)},
        "hub": {"hub_repo": "someone/texts", "hub_file": "a.txt", "hub_type": "dataset"},
    }
    for how, given in ways.items():
        source = texts.source_of({"source": texts.OWN_TEXT, "own_kind": how, **given}, small_limits())
        values = {**form.first_values(texts.OWN_TEXT), "equal": "active"}
        back = form.values_of(form.comparison_spec(values, source, small_limits()))
        assert back["source"] == texts.OWN_TEXT and back["own_kind"] == ("hub" if how == "hub" else "paste")
        assert back["hub_repo"] == given.get("hub_repo", "") and back["text"] == source.pasted


def test_texts_differ_in_no_other_settings_than_those_they_bring_along():
    each = [form.first_values(source) for source in texts.SOURCES]
    assert {n for values in each for n in values if values[n] != each[0][n]} == set(form.OF_THE_TEXT)


def test_texts_side_by_side_mark_where_they_part():
    html = both_texts(["the ", "the "], ["wind <b>", "wind rises"])
    assert "after 5 characters" in html and "&lt;b&gt;" in html and "<b>" not in html
    assert "Both wrote the same" in both_texts(["a", "a"], ["b", "b"])
    assert "Each takes its likeliest token; they part at the" in both_texts(["a", "a"], ["b", "c"], greedy=True)


def test_divergence_is_zero_for_equals_and_ln_2_for_strangers():
    p, q = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert divergence(p, p) == 0 and math.isclose(divergence(p, q), math.log(2), rel_tol=1e-6)


def test_a_short_comparison_says_that_it_measured_early_speed(finished):
    """The finished one is dozens of steps long: both still fall by far more than they differ."""
    view = finished[2]
    falling = {"step": [0, 10, 20, 30, 40], "val_loss": [4.0, 3.0, 2.5, 2.2, 2.0]}
    rested = {"step": [0, 10, 20, 30, 40], "val_loss": [4.0, 3.0, 2.0, 2.0, 2.0]}

    def said(*evaluations: dict, seeds: int = 1) -> str:
        histories = tuple(History() for _ in evaluations)
        for history, given in zip(histories, evaluations):
            history.evaluations.update(given)
        sides = {side: dataclasses.replace(part, histories=histories) for side, part in view.sides.items()}
        verdict = dataclasses.replace(view.verdict, difference=0.01, margin=0.02, seeds=seeds)
        return pair_picture.verdict(dataclasses.replace(view, sides=sides, verdict=verdict))

    assert "how fast they learn at first" in said(falling) and "from step 30 to step 40" in said(falling)
    assert "still learning" not in said(rested)
    assert "the dense model fell by 0.1000" in said(falling, rested, seeds=2), "the mean of 0.2 and 0"
    assert "the dense model fell by 0.2000" in said(falling, rested), "the second pair was not complete"
    under_way = dataclasses.replace(view, state="training")
    assert "still learning" not in pair_picture.verdict(under_way)


def test_a_model_of_a_pair_is_not_said_to_have_come_from_elsewhere(finished):
    jobs, job = finished[:2]
    model_id = job.model_ids["moe"]
    checkpoint = jobs.registry.get(model_id, ANNA)
    words = verdict.details(RunView.of_checkpoint(model_id, checkpoint))
    assert "A comparison trained it" in words and "comes with" not in words


def test_a_finished_comparison_links_to_what_it_came_to_and_to_nothing_of_its_text(finished):
    _, job, view = finished
    secret = dataclasses.replace(job.spec, source=Source(OWN_TEXT, text="under the stairs " * 99))
    record = letters.unpacked(pair_letters(view, secret))
    ends = [[history.val_loss for history in view.sides[side].histories] for side in ("dense", "moe")]
    assert record["losses"] == [round(1e4 * sum(losses) / len(losses)) for losses in ends]
    assert record["hash"] == text_hash(secret.source.text) and "stairs" not in json.dumps(record)
    stopped = letters.unpacked(pair_letters(dataclasses.replace(view, withheld="Stopped: …"), job.spec))
    assert "losses" not in stopped and "machine" not in stopped
    assert pair_letters(view, None) == pair_letters(dataclasses.replace(view, state="failed"), job.spec) == ""
