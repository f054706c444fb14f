"""Inspect's steps, lens, training and cost: what they draw of every kind of model."""

import dataclasses
import html
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.figures import palette
from playground.figures.replay import step_at
from playground.figures.wire import numbers_of
from playground.inspection.head_matrices import Matrix, head_matrix
from playground.inspection.optimizer_step import optimizer_step
from playground.inspection.replay import replay
from playground.inspection.walk import step_names
from playground.model import PRESETS, Transformer, trace
from playground.service.board import Board
from playground.service.limits import LOCAL, PUBLIC
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.storage.snapshots import find_snapshots, keep_snapshot
from playground.training import History, TrainConfig
from playground.ui.tabs.inspect import steps, training
from playground.ui.tabs.inspect.drawn import window, window_buttons
from playground.ui.tabs.inspect.moments import prediction
from playground.ui.tabs.inspect.pictures import HEIGHT
from playground.ui.tabs.inspect.training import muon_note, weight_receipt
from playground.ui.tabs.inspect.words import coloured
from playground.words.numbers import percent
from tests.model.configs import TINY, VARIANTS
from tests.ui.inspecting import Inspecting, drawn
from tests.ui.runs import ANNA, small_spec, until

LETTERS = CharTokenizer("ab<>&cde\n ")
EVERY = (
    {"view": "steps", "lens": True},
    {"view": "training"},
    {"view": "training", "training": "moments"},
    {"view": "cost"},
)


def checkpoint(config=TINY, seed=1, **more) -> Checkpoint:
    config = config.replace(vocab_size=LETTERS.vocab_size, init_std=0.5)
    return Checkpoint(Transformer(config, seed=seed), LETTERS, History(), "tried", **more)


@pytest.fixture(scope="module")
def tab(tmp_path_factory) -> Inspecting:
    """A run of which three moments were kept."""
    folder, last = tmp_path_factory.mktemp("run"), checkpoint(seed=3)
    for step, seed in ((0, 1), (10, 2), (30, 3)):
        keep_snapshot(folder, step, checkpoint(seed=seed).model.state_dict())
    about = {"training": TrainConfig(optimizer="adamw").to_dict(), "language": "copy", "recorded": True}
    snapshots = find_snapshots(folder, last.config)
    return Inspecting(Checkpoint(last.model, LETTERS, History(), "watched", about, snapshots), LOCAL)


def figures(made: dict) -> dict[str, dict]:
    return {name: content["figure"] for name, content in made.items() if isinstance(content, dict)}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_model_has_every_view_in_figures_that_plotly_takes(tab, name):
    import plotly.graph_objects as go

    other = tab.add(checkpoint(VARIANTS[name]))
    for view in EVERY:
        made = tab.made("abcabc", model=other, layer=1, head=1, query=4, key=1, **view)
        for figure in figures(made).values():
            layout = {key: value for key, value in figure["layout"].items() if key not in ("template", "meta")}
            go.Figure({"data": [{k: v for k, v in t.items() if k != "meta"} for t in figure["data"]], "layout": layout})
    seen = tab.at("abcabc", model=other).look
    for step in step_names(seen, 1):
        made = tab.made("abcabc", model=other, view="steps", step=step, layer=1, head=1, query=3, key=1)
        assert made["step-chart"]["figure"]["layout"]["height"] == HEIGHT, step


@pytest.mark.parametrize("view", EVERY)
def test_one_token_an_example_and_escaped_texts(tab, view):
    tab.made("a", **view)
    tab.made("", subject="pronoun", **view)
    for content in tab.made("<b>&<b>", **view).values():
        assert "<b>&<" not in json.dumps(content) and "“<b" not in json.dumps(content)


def test_what_a_step_draws_is_what_it_computed(tab):
    seen = tab.look("abcabcab")
    at = {"layer": 1, "head": 2, "query": 6, "key": 3}
    cells = drawn(tab.made("abcabcab", view="steps", step="softmax", **at)["step-chart"])
    assert np.allclose(np.nan_to_num(cells), seen.trace["pattern", 1][0, 2], atol=1e-6) and np.isnan(cells[0, 1])


def test_a_click_in_a_steps_picture_chooses_what_it_draws(tab):
    def click(step: str, **click) -> dict:
        at = {"layer": 1, "head": 0, "query": 5, "key": 0}
        return tab.shown("abcabc", {"slot": "step-chart", **click}, view="steps", step=step, **at).selection

    chosen = click("softmax", index=[4, 2])
    assert (chosen["query"], chosen["key"]) == (4, 2)
    assert click("embed", index=[3, 7])["query"] == 3 and click("output", index=[2, 0])["head"] == 2
    assert click("add", index=[0, 4])["query"] == 4 and click("mlp", index=[0, 1])["query"] == 5
    for odd in (None, [99, 0], "x", [0.5, 0]):
        with pytest.raises(ValueError, match="Click again"):
            click("softmax", index=odd)


def test_a_step_that_a_layer_lacks_gives_way_to_the_next_one(tab):
    names = step_names(tab.look("abc"), 0)
    assert steps.nearest("arrive", names) == "norm" and steps.nearest("rotate", names) in names
    assert steps.nearest("nonsense", names) == names[0] and steps.nearest("predict", names) == names[-1]
    assert coloured("{q:Q} · {k:K}ᵀ <i>{x}") == '<span class="q">Q</span> · <span class="k">K</span>ᵀ &lt;i&gt;{x}'


def test_the_lens_draws_the_models_own_probabilities(tab):
    seen = tab.look("abcabcab")
    logits = seen.model(torch.tensor([seen.ids])).logits[0].detach().double().numpy()
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    at = {"view": "steps", "lens": True, "query": 5}
    assert np.allclose(drawn(tab.made("abcabcab", **at)["lens-map"])[-1], chances.max(1), atol=1e-5)
    other = int(np.argsort(logits[5])[-3])
    followed = drawn(tab.made("abcabcab", answer=str(other), **at)["lens-map"])
    assert np.allclose(followed[-1, 5], chances[5, other], atol=1e-5)


def test_a_slot_of_the_steps_depends_on_what_it_shows_and_on_nothing_else(tab):
    def digests(**chosen) -> dict[str, str]:
        at = {"layer": 1, "head": 2, "query": 5, "key": 3, "step": "softmax", "lens": True, **chosen}
        return {name: slot.digest for name, slot in steps.slots(tab.at("abcabc", view="steps", **at)).items()}

    at = digests()
    changed = {name: {n for n in at if at[n] != digests(**{name: 0})[n]} for name in ("layer", "head", "query", "key")}
    own = {"step-chart", "step-how"}
    assert changed["key"] == changed["head"] == own and changed["layer"] == {*own, "step-heading", "step-row"}
    assert changed["query"] - own == {"step-window", "lens-answer", "lens-window", "lens-map"}
    other = str(tab.look("abcabc").ids[0])
    assert {n for n in at if at[n] != digests(answer=other)[n]} <= {"lens-map"}
    assert at == digests(row=3, training="moments", matrix="k", why=True)


def test_the_row_of_steps_has_what_the_model_has_and_a_mixture_its_experts(tab):
    mixture = checkpoint(VARIANTS["experts"])
    made = tab.made("abcabc", model=tab.add(mixture), view="steps", step="mlp", layer=1, head=0, query=4, key=0)
    names = step_names(tab.at("abcabc", model="another").look, 1)
    assert made["step-row"].count('name="step"') == len(names) and "router and experts" in made["step-row"]
    assert "Router and experts" in made["step-heading"] and 'data-open-tab="moe"' in made["step-how"]
    bars = made["step-chart"]["figure"]["data"][0]
    seen = tab.at("abcabc", model="another").look.trace
    assert np.allclose(numbers_of(bars["x"]), seen["router_probabilities", 1][0, 4], atol=1e-6)
    filled = {i for i, color in enumerate(bars["marker"]["color"]) if color == palette.DENSE}
    assert filled == set(seen["experts", 1][0, 4].tolist())
    dense = tab.made("abcabc", view="steps", step="mlp", layer=1)
    assert "outer" not in dense["step-row"] and "data-open-tab" not in dense["step-how"]


def test_fields_of_a_view_are_held_to_what_the_model_has(tab):
    def held(module, **chosen) -> dict:
        return module.within(tab.at("abcabc", layer=0, head=1, **chosen))

    assert held(steps, step="arrive")["step"] == "norm" and held(steps, answer="99")["answer"] == ""
    odd = held(training, matrix="of another model", row=10**9, column=-3, optimizer="x", training="y")
    D = TINY.d_model // TINY.n_heads
    assert odd == {"training": "step", "optimizer": "trained", "matrix": "q", "row": D - 1, "column": 0}
    fine = {"training": "moments", "optimizer": "muon", "matrix": "head.weight", "row": 9, "column": 15}
    assert held(training, **fine) == fine


@pytest.mark.parametrize("most", [22, 28, 64])
def test_earlier_and_later_lead_to_the_windows_beside(most):
    for length in (most, most + 1, 100, 257):
        for query in range(length):
            part = window(length, query, most)
            buttons = window_buttons(length, query, most)
            goals = [json.loads(html.unescape(move))["query"] for move in re.findall(r'data-move="([^"]*)"', buttons)]
            starts = [window(length, goal, most).start for goal in goals]
            assert len(goals) == (part.start > 0) + (part.stop < length) and all(0 <= goal < length for goal in goals)
            assert all((start < part.start) == (i == 0 and part.start > 0) for i, start in enumerate(starts))
            assert part.start not in starts


# ---- one optimizer step ----------------------------------------------------------------------------------------------


def test_one_weight_is_reckoned_by_hand_and_agrees(tab):
    for which in ("q", "head.weight"):
        made = tab.made("abcabc", view="training", layer=1, head=2, matrix=which, row=2, column=99)
        receipt = made["training-weight"]
        difference = receipt.rpartition("in the model</td><td>")[2].partition("<")[0].replace("−", "-")
        assert abs(float(difference)) < 1e-7
    assert np.abs(drawn(made["training-step"])).max() > 0


def test_a_step_that_cannot_be_taken_is_a_sentence(tab, monkeypatch):
    assert "training-problem" in tab.made("a", view="training")
    monkeypatch.setattr(training, "MOST_PARAMETERS", 10)
    assert "10" in tab.made("abc", view="training")["training-problem"]


def test_a_rate_is_the_runs_only_where_a_run_had_it(tab):
    def cards(**chosen) -> str:
        return tab.made("abcab", view="training", **chosen)["training-cards"]

    assert all("of its training" in cards(optimizer=rule) for rule in ("trained", "adamw", "muon"))
    assert "of its training" not in cards(optimizer="sgd") + cards(subject="pronoun")


def test_a_click_in_one_of_the_pictures_chooses_its_weight(tab):
    for name in training.PICTURES:
        chosen = tab.shown("abcab", {"slot": f"training-{name}", "index": [2, 9]}, view="training").selection
        assert (chosen["row"], chosen["column"]) == (2, 9)
        with pytest.raises(ValueError, match="Click again"):
            tab.shown("abcab", {"slot": f"training-{name}", "index": [60, 0]}, view="training")


def test_what_muon_does_is_measured_alike_on_gradient_and_step():
    gradient = torch.diag(torch.tensor([8.0, 4.0, 2.0, 1.0, 0.0, 0.0]))
    moved = torch.diag(torch.tensor([0.06, 0.05, 0.04, 0.03, 0.0, 0.0]))
    report = optimizer_step(checkpoint(seed=1).model, [1, 2, 3], rule="muon")
    name, weights = "blocks.0.attention.out.weight", torch.ones(6, 6)
    after = weights * (1 - report.learning_rates["muon"] * report.config.weight_decay) - moved
    made = {"before": {name: weights}, "gradients": {name: gradient}, "after": {name: after}}
    note = muon_note(Matrix("W", name), dataclasses.replace(report, **made), 0)
    assert all(number in note for number in ("4 directions", "4.0 times", "8.0 times", "1.5 times", "2.0 times"))
    other = torch.diag(torch.tensor([3.0, 3.0, 3.0, 0.0, 0.0, 0.0]))  # another expert, above it
    experts = {"before": (weights, weights), "gradients": (other, gradient), "after": (weights - moved, after)}
    made = {kind: {name: torch.stack(both)} for kind, both in experts.items()}
    assert "4.0 times" in muon_note(Matrix("W", name), dataclasses.replace(report, **made), 7)
    assert "3 directions" in muon_note(Matrix("W", name), dataclasses.replace(report, **made), 5)


def test_a_gradient_that_is_rounding_is_told_from_one_that_is_small():
    """With one token to look at, every weight is 1 whatever queries and keys say."""
    model = checkpoint(seed=1).model
    report = optimizer_step(model, [1, 2], rule="muon")
    q, v = (head_matrix(model.config, kind, 1, 2) for kind in "qv")
    assert training.rounding_beside(q, report) > 0 and training.rounding_beside(v, report) == 0
    noise = dataclasses.replace(report, gradients={q.name: 1e-10 + 0 * report.gradients[q.name]})
    assert training.rounding_beside(q, noise) > 0
    assert training.rounding_beside(q, optimizer_step(model, [1, 2, 3, 1], rule="muon")) == 0
    assert weight_receipt(q, optimizer_step(model, [1, 2], rule="adamw"), 0, 0)


# ---- through training ------------------------------------------------------------------------------------------------


def test_a_moment_shows_the_pattern_and_the_prediction_of_then(tab):
    at = {"view": "training", "training": "moments", "layer": 1, "head": 2, "query": 5, "key": 1}
    made = tab.made("abcabc", moment=0, **at)
    then = checkpoint(seed=1).model
    then.load_state_dict({name: tensor.half().float() for name, tensor in then.state_dict().items()})
    seen = trace(then, torch.tensor([LETTERS.encode("abcabc")]))
    assert np.allclose(np.nan_to_num(drawn(made["moments-pattern"])), seen["pattern", 1][0, 2].numpy(), atol=1e-5)
    lines = made["moments-timeline"]["figure"]["data"]
    mine = next(line for line in lines if line["name"] in ("L1 H2", "1.2"))
    assert np.allclose([step_at(x) for x in numbers_of(mine["x"])], [0, 10, 30], atol=1e-3)
    # a, b, c at 3, 4, 5 have earlier copies; what followed them stands at 1, 2, 3
    expected = np.mean([seen["pattern", 1][0, 2, t, t - 2].item() for t in (3, 4, 5)])
    assert numbers_of(mine["y"])[0] == pytest.approx(expected, abs=1e-5)
    for nonsense in (None, "x", -5, 10**9):
        assert tab.made("abcabc", moment=nonsense, **at)["moments-pattern"]["figure"]


def test_each_moment_has_its_own_most_probable_token():
    def seen(logits: list[float]) -> SimpleNamespace:
        made = {"logits": torch.tensor([[logits]])}
        return SimpleNamespace(trace=made, tokens=["c"], token_label=lambda token: "abcdefghijkl"[token])

    then, end = seen([0.0, 1.0] + [0.5] * 10), seen([9.0, 0.0] + [5.0] * 10)
    figure, words = prediction(end, then, 0, 1, 500)
    early, late = then.trace["logits"][0, 0].softmax(-1), end.trace["logits"][0, 0].softmax(-1)
    assert f"“b” with {percent(float(early[1]))}" in words and f"“a” with {percent(float(late[0]))}" in words
    assert {"a", "b"} <= set(figure["data"][0]["customdata"]), "the first is drawn, little as both moments make of it"
    figure, words = prediction(end, end, 0, 500, 500)
    assert "“a”" in words and len(figure["data"]) == 1


def test_a_click_in_the_timeline_goes_to_the_nearest_moment(tab):
    at = {"view": "training", "training": "moments", "query": 5, "key": 0}
    for step, moment in ((0, 0), (9, 1), (29, 2), (1e9, 2)):
        click = {"slot": "moments-timeline", "x": step**0.5}
        assert tab.shown("abcabc", click, **at).selection["moment"] == moment
    chosen = tab.shown("abcabc", {"slot": "moments-pattern", "index": [3, 1]}, **at).selection
    assert (chosen["query"], chosen["key"]) == (3, 1)
    for odd in (None, "x", [1], True):
        with pytest.raises(ValueError, match="Click again"):
            tab.shown("abcabc", {"slot": "moments-timeline", "x": odd}, **at)


def test_where_no_moments_were_kept_there_is_one_sentence(tab):
    at = {"view": "training", "training": "moments"}
    assert not figures(tab.made("abc", model=tab.add(checkpoint(TINY)), **at))
    assert not figures(tab.made("", subject="pronoun", **at))


def test_a_run_keeps_its_moments_to_look_back_at_and_those_of_another_future_go(tmp_path):
    registry = Registry(LOCAL, shipped=tmp_path)
    jobs = Board(registry, LOCAL)
    job = jobs.start(ANNA, small_spec(steps=20))
    until(lambda: job.settled)
    made = registry.get(job.id, ANNA)
    assert made.snapshots.steps[0] == 0 and made.snapshots.steps[-1] == 20 and len(made.snapshots.steps) > 10
    found = replay(made, made.tokenizer.encode("the cat sat"))
    assert found.losses[-1] < found.losses[0]
    ids = torch.tensor([made.tokenizer.encode("the cat sat")])
    assert torch.allclose(made.snapshots.model(20)(ids).logits, made.model(ids).logits, atol=0.05)
    assert jobs.source_of(made) is job.spec.source and jobs.source_of(checkpoint()) is None
    keep_snapshot(job.folder, 25, made.model.state_dict())  # as if a longer run had been interrupted
    jobs.resume(ANNA, job.id, more_steps=10)
    until(lambda: job.settled)
    steps_kept = registry.get(job.id, ANNA).snapshots.steps
    assert steps_kept[-1] == 30 and set(made.snapshots.steps) <= set(steps_kept)


def test_fewer_moments_are_kept_of_larger_models():
    assert PUBLIC.snapshots(PRESETS["small"]) == 40
    assert 4 <= PUBLIC.snapshots(PRESETS["medium"]) < 20
    assert PUBLIC.snapshots(PRESETS["gpt2-small"]) == 0
