"""Inspect's steps, lens, training and cost: what they draw of every kind of model."""

import json
import re

import numpy as np
import pytest
import torch

from playground.engine import generate
from playground.figures.replay import step_at
from playground.inspection.edits import SwitchOff, to_dict
from playground.inspection.heads import HABITS
from playground.inspection.walk import step_names
from playground.model import trace
from playground.service.limits import LOCAL
from playground.storage import Checkpoint
from playground.storage.snapshots import find_snapshots, keep_snapshot
from playground.training import History, TrainConfig
from playground.ui.tabs.inspect import kv_cache, steps, training
from playground.ui.tabs.inspect.pictures import HEIGHT
from tests.figures.decoded import numbers_of
from tests.model.configs import TINY, VARIANTS
from tests.ui.inspecting import LETTERS, Inspecting, check_figures, drawn, made_up

EVERY = (
    {"view": "steps", "lens": True},
    {"view": "training"},
    {"view": "training", "training": "moments"},
    {"view": "cost"},
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory) -> Inspecting:
    """A run of which three moments were kept."""
    folder, last = tmp_path_factory.mktemp("run"), made_up(seed=3)
    for step, seed in ((0, 1), (10, 2), (30, 3)):
        keep_snapshot(folder, step, made_up(seed=seed).model.state_dict())
    about = {"training": TrainConfig(optimizer="adamw").to_dict(), "language": "copy", "recorded": True}
    snapshots = find_snapshots(folder, last.config)
    return Inspecting(Checkpoint(last.model, LETTERS, History(), "watched", about, snapshots), LOCAL)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_model_has_every_view_in_figures_that_plotly_takes(tab, name):
    other = tab.add(made_up(VARIANTS[name]))
    folds = dict.fromkeys(("why", "compare", "change"), True)
    for view in ({"edits": [to_dict(SwitchOff(1, "head", 2))], **folds}, *EVERY):
        figures = check_figures(tab.made("abcabc", model=other, layer=1, head=1, query=4, key=1, **view))
        assert figures > 4 or "view" in view
    seen = tab.at("abcabc", model=other).look
    for step in step_names(seen, 1):
        made = tab.made("abcabc", model=other, view="steps", step=step, layer=1, head=1, query=3, key=1)
        assert made["step-chart"]["figure"]["layout"]["height"] <= HEIGHT, step


@pytest.mark.parametrize("view", EVERY)
def test_one_token_an_example_and_escaped_texts(tab, view):
    tab.made("a", **view)
    tab.made("", subject="pronoun", **view)
    for content in tab.made("<b>&<b>", **view).values():
        assert "<b>&<" not in json.dumps(content) and "“<b" not in json.dumps(content)


def test_a_click_in_a_steps_picture_chooses_what_it_draws(tab):
    def click(step: str, **click) -> dict:
        at = {"layer": 1, "head": 0, "query": 5, "key": 0, "all_rows": step == "norm"}
        return tab.shown("abcabc", {"slot": "step-chart", **click}, view="steps", step=step, **at).selection

    chosen = click("softmax", index=[4, 2])
    assert (chosen["query"], chosen["key"]) == (4, 2)
    assert click("norm", index=[3, 7])["query"] == 3
    assert click("embed", index=[0, 7])["query"] == 3, "of three rows at first, the last is the chosen one"
    assert click("output", index=[2, 0])["head"] == 2
    assert click("add", index=[0, 4])["query"] == 4 and click("mlp", index=[0, 1])["query"] == 5
    for odd in (None, [99, 0], "x", [0.5, 0]):
        with pytest.raises(ValueError, match="Click again"):
            click("softmax", index=odd)


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


def test_fields_of_a_view_are_held_to_what_the_model_has(tab):
    def held(module, **chosen) -> dict:
        return module.within(tab.at("abcabc", layer=0, head=1, **chosen))

    assert held(steps, step="arrive")["step"] == "norm" and held(steps, answer="99")["answer"] == ""
    odd = held(training, matrix="of another model", row=10**9, column=-3, optimizer="x", training="y")
    D = TINY.d_model // TINY.n_heads
    assert {"picture": "step", "matrix": "q", "row": D - 1, "column": 0}.items() <= odd.items()
    assert held(training, training="moments", look_at="x")["look_at"] in HABITS
    fine = {"optimizer": "muon", "picture": "gradient", "matrix": "head.weight", "row": 9, "column": None}
    fine |= {"training": "moments", "look_at": "first"}
    assert held(training, **fine) == fine
    for which in ("q", "head.weight"):  # one weight is reckoned by hand and agrees
        made = tab.made("abcabc", view="training", layer=1, head=2, matrix=which, row=2, column=99)
        difference = made["training-weight"].rpartition("in the model</td><td>")[2].partition("<")[0].replace("−", "-")
        assert abs(float(difference)) < 1e-7
    assert made["training-picture"]["summary"].startswith("Framed: row 2, column 15, step ")
    framed = tab.made("abcabc", view="training", matrix="head.weight")["training-picture"]
    moves, (frame,) = np.abs(drawn(framed)), framed["figure"]["layout"]["shapes"]
    assert moves.max() == moves[int(frame["y0"] + 1), int(frame["x0"] + 1)] > 0, "what moves most is framed"
    clicked = tab.shown("abcabc", {"slot": "training-picture", "x": 3, "y": 10**9}, view="training").selection
    assert (clicked["row"], clicked["column"]) == (D - 1, 3)
    headline = made["training-headline"]
    assert "One step lowers the loss from" in headline and "Largest move in output layer" in headline
    assert made["training-slips"].count("<details") == 1 and made["training-slips"].count("<p>") == 2


# ---- through training ------------------------------------------------------------------------------------------------


def test_a_moment_shows_the_pattern_and_the_prediction_of_then(tab):
    at = {"view": "training", "training": "moments", "layer": 1, "head": 2, "query": 5, "key": 1}
    made = tab.made("abcabc", moment=0, **at)
    then = made_up(seed=1).model
    then.load_state_dict({name: tensor.half().float() for name, tensor in then.state_dict().items()})
    seen = trace(then, torch.tensor([LETTERS.encode("abcabc")]))
    said = re.search(r"Head (\d)\.(\d) learned .* steps (\d+) and (\d+)", made["moments-headline"])
    layer, head, *rose = map(int, said.groups())
    assert (layer, head) != (1, 2) and made["moments-head"] == f"Head {layer}.{head} at step 0", "not the chosen one"
    pattern = np.nan_to_num(drawn(made["moments-pattern"]))
    assert np.allclose(pattern, seen["pattern", layer][0, head].numpy(), atol=1e-5)
    figure = made["moments-timeline"]["figure"]
    shade = next(shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect")
    assert [step_at(shade["x0"]), step_at(shade["x1"])] == pytest.approx(rose), "the steps that the headline names"
    mine = next(line for line in figure["data"] if line["name"] == "head 1.2")
    assert np.allclose([step_at(x) for x in numbers_of(mine["x"])], [0, 10, 30], atol=1e-3)
    # a, b, c at 3, 4, 5 have earlier copies; what followed them stands at 1, 2, 3
    expected = np.mean([seen["pattern", 1][0, 2, t, t - 2].item() for t in (3, 4, 5)])
    assert numbers_of(mine["y"])[0] == pytest.approx(expected, abs=1e-5)
    for nonsense in (None, "x", -5, 10**9):
        assert tab.made("abcabc", moment=nonsense, **at)["moments-pattern"]["figure"]


def test_a_click_in_the_timeline_goes_to_the_nearest_moment(tab):
    at = {"view": "training", "training": "moments", "query": 5, "key": 0}
    for step, moment in ((0, 0), (9, 1), (29, 2), (1e9, 2)):
        click = {"slot": "moments-timeline", "x": step**0.5}
        assert tab.shown("abcabc", click, **at).selection["moment"] == moment
    shown = tab.shown("abcabc", {"slot": "moments-pattern", "index": [3, 1]}, **at)
    assert (shown.selection["query"], shown.selection["key"]) == (3, 1)
    none = tab.made("abcabc", model=tab.add(made_up()), **at)
    assert "Choose Copying" in none["training-problem"] and not any(name.startswith("moments") for name in none)
    for odd in (None, "x", [1], True):
        with pytest.raises(ValueError, match="Click again"):
            tab.shown("abcabc", {"slot": "moments-timeline", "x": odd}, **at)


# ---- the KV cache ----------------------------------------------------------------------------------------------------


def test_both_texts_are_the_same_and_the_cache_is_as_large_as_it_says():
    inspecting = Inspecting(made_up())
    at = inspecting.at("abcab", view="cost", kv=True)
    found = kv_cache.measured(at)
    steps = list(generate(at.look.model, list(at.look.ids), kv_cache.FEWEST, kv_cache.RULES))
    assert found.same and found.largest < 1e-4 and found.lengths == [step.length for step in steps]
    assert found.projections[0] == steps[-1].projections < found.projections[1]
    assert found.held == steps[-1].cache_length
    assert kv_cache.medians([1.0] * 9 + [90.0] * 4 + [1.0] * 7) == [1.0] * 2, "a pause of the machine is not drawn"
    made = {name: slot.make() for name, slot in kv_cache.slots(at).items()}
    assert f"{kv_cache.FEWEST} tokens" in made["kv-proof"]
    assert f"{at.look.config.cache_bytes(found.held):,} bytes" in made["kv-proof"]
    without, with_it = (numbers_of(line["y"])[0] for line in made["kv-times"]["figure"]["data"])
    assert f"{with_it:.2f} ms with the cache and {without:.2f}" in made["kv-times"]["summary"], "the context ends there"
    assert all(slot.slow for slot in kv_cache.slots(at).values())
    assert not kv_cache.slots(inspecting.at("abcab", view="cost"))
    at = Inspecting(made_up(TINY.replace(causal=False))).at("abcab", view="cost", kv=True)
    with pytest.raises(ValueError, match=r"cache.*help"):
        kv_cache.slots(at)["kv-proof"].make()
    assert kv_cache.slots(at)["kv-times"].make() is None, "which is said once"
