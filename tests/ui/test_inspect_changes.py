"""The views on minds, changes, learning, training and the cache: what they draw, and what they say to bad input."""

import dataclasses
import html
import json
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch
from playground.ui.tabs.inspect.frame import MODEL, Place

from playground.data import corpus_from_language
from playground.data.tokenizers import CharTokenizer
from playground.figures.replay import step_at
from playground.figures.wire import numbers_of
from playground.inspection.cost import Cost
from playground.inspection.edits import EditCell, RemoveMask, SwapPattern, SwitchOff, edits_tap
from playground.inspection.head_matrices import Matrix, head_matrix
from playground.inspection.optimizer_step import optimizer_step
from playground.model import Pass, Transformer
from playground.service.limits import LOCAL
from playground.service.unseen import unseen
from playground.storage import Checkpoint
from playground.storage.snapshots import find_snapshots, keep_snapshot
from playground.training import History, TrainConfig, evaluate
from playground.ui.tabs.inspect import changes, edit, learn, validation
from playground.ui.tabs.inspect.learn import muon_note, picture, weight_receipt
from playground.ui.tabs.inspect.replay import prediction
from playground.ui.tabs.inspect.tested import survey_of
from playground.words.numbers import percent
from tests.model.configs import TINY, VARIANTS
from tests.ui.inspecting import VISITOR, Inspecting

LETTERS = CharTokenizer("ab<>&cde\n ")
VIEWS = ("minds", "edit", "learn", "replay", "sizes")
TOO_LITTLE = {"learn": "nothing after it to learn from", "replay": "moments of this model's training were kept"}


def checkpoint(config=TINY, seed=1, **more) -> Checkpoint:
    config = config.replace(vocab_size=LETTERS.vocab_size, init_std=0.5)
    return Checkpoint(Transformer(config, seed=seed), LETTERS, History(), "tried", **more)


@pytest.fixture(scope="module")
def watched(tmp_path_factory) -> Checkpoint:
    folder, last = tmp_path_factory.mktemp("run"), checkpoint(seed=3)
    for step, seed in ((0, 1), (10, 2), (30, 3)):
        keep_snapshot(folder, step, checkpoint(seed=seed).model.state_dict())
    about = {"training": TrainConfig(optimizer="adamw").to_dict(), "language": "copy", "recorded": True}
    return Checkpoint(last.model, LETTERS, History(), "watched", about, find_snapshots(folder, last.config))


@pytest.fixture(scope="module")
def tab(watched) -> Inspecting:
    return Inspecting(watched, LOCAL)


def of_model(tab: Inspecting, checkpoint: Checkpoint, prompt: str, **more) -> dict:
    """A handler's values with another model chosen; a tab takes a second to build, a model none."""
    model_id = tab.page.registry.add(VISITOR, checkpoint, model_id="another")
    return {**tab.at(prompt, **more), tab.page.model: model_id}


def drawn(updates: dict, component, trace: int = 0) -> np.ndarray:
    return numbers_of(updates[component]["figure"]["data"][trace]["z"])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["rotary", "post-norm", "one key head, qk-norm, relu2", "separate heads", "experts"])
def test_every_kind_of_model_has_every_view(tab, name, view):
    import plotly.graph_objects as go

    updates = tab.frame.update(of_model(tab, checkpoint(VARIANTS[name]), "abcabc", view=view, place=(1, 2, 4, 1)))
    notice = html.unescape(updates[tab.frame.notice])
    assert notice == "" or TOO_LITTLE.get(view, "?") in notice
    figures = [u["figure"] for u in updates.values() if isinstance(u, dict) and "figure" in u]
    assert figures or view in ("replay", "sizes")
    for figure in figures:
        layout = {key: value for key, value in figure["layout"].items() if key not in ("template", "meta")}
        go.Figure({"data": [{k: v for k, v in t.items() if k != "meta"} for t in figure["data"]], "layout": layout})


@pytest.mark.parametrize("view", VIEWS)
def test_one_token_an_example_and_a_model_without_a_mask_are_drawn_or_explained(tab, view):
    updates = tab.frame.update(tab.at("a", view=view))
    notice = html.unescape(updates[tab.frame.notice])
    assert (TOO_LITTLE["learn"] in notice) if view == "learn" else notice == ""
    worked = tab.frame.update(tab.at("", view=view, subject="pronoun"))
    example, _, complaint = html.unescape(worked[tab.frame.notice]).partition("</p>")
    assert "with pencil and paper" in example and not complaint
    assert view != "replay" or "written, not trained" in worked[tab.component("replay-nothing")]
    unmasked = of_model(tab, checkpoint(TINY.replace(causal=False)), "abc", view=view)
    notice = html.unescape(tab.frame.update(unmasked)[tab.frame.notice])
    assert notice == ""


@pytest.mark.parametrize("view", VIEWS)
def test_texts_of_tokens_are_escaped(tab, view):
    updates = tab.frame.update(tab.at("<b>&<b>", view=view))
    shown = [update for component, update in updates.items() if isinstance(component, gr.HTML)]
    assert shown and "<b>" not in json.dumps(shown)


def test_the_lens_draws_the_models_own_probabilities(tab):
    updates = tab.frame.update(tab.at("abcabcab", view="minds", place=(1, 0, 5, 0)))
    cells = drawn(updates, tab.component("minds_lens"))
    seen, _ = tab.frame.read(tab.at("abcabcab"))
    logits = seen.model(torch.tensor([seen.ids])).logits[0].detach().double().numpy()
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert np.allclose(cells[-1], chances.max(1), atol=1e-5)
    other = int(np.argsort(logits[5])[-3])
    updates = tab.frame.update(tab.at("abcabcab", view="minds", place=(1, 0, 5, 0), minds_answer=str(other)))
    assert np.allclose(drawn(updates, tab.component("minds_lens"))[-1, 5], chances[5, other], atol=1e-5)


def test_changes_travel_as_codes_and_their_bars_are_the_changed_models(tab):
    place = Place(1, 2, 5, 3)
    made = {
        "head": SwitchOff(1, "head", 2), "attention": SwitchOff(1, "attention"), "layer": SwitchOff(1, "layer"),
        "feed-forward": SwitchOff(1, "feed-forward"), "uniform": SwapPattern(1, 2, "uniform"),
        "previous": SwapPattern(1, 2, "previous"), "set": EditCell(1, 2, 5, 3, 0.75), "mask": RemoveMask(),
        "scale": EditCell(1, 2, 5, 3, 0.75, scale=True), "mask here": RemoveMask(1),
    }  # fmt: skip
    assert set(made) == set(edit.CHANGES)
    for name, expected in made.items():
        assert edit.made(name, place, 0.75, True) == expected
        assert changes.parsed([changes.coded(expected)]) == [expected]
    codes = [changes.coded(made["head"]), changes.coded(made["set"])]
    updates = tab.frame.update(tab.at("abcabcab", view="edit", place=(1, 2, 5, 3), edit_list=codes))
    seen, _ = tab.frame.read(tab.at("abcabcab"))
    tap = edits_tap([made["head"], made["set"]], seen.config)
    after = seen.model(torch.tensor([seen.ids]), Pass(tap=tap)).logits[0, 5].softmax(-1)
    bars = updates[tab.component("edit_bars")]["figure"]["data"]
    assert np.allclose(np.sort(numbers_of(bars[1]["x"]))[-1], after.max().item(), atol=1e-5)
    assert "head 2 of layer 1 switched off" in updates[tab.component("edit_cards")]


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([changes.coded(EditCell(0, 0, 2, 5, 0.5))], "comes after it"),
        ([changes.coded(EditCell(0, 0, 7, 2, 0.5))], "outside this prompt of 6"),
        ([changes.coded(SwitchOff(9, "head", 0))], "no layer 9"),
        (["{}"], "cannot be used"),
        (["[" * 5000], "cannot be used"),
        ([7], "cannot be used"),
        ([changes.coded(SwitchOff(0, "head", 0))] * 99, "cannot be used"),
    ],
)
def test_changes_that_do_not_fit_are_a_sentence(tab, codes, said):
    notice = tab.frame.update(tab.at("abcabc", view="edit", edit_list=codes))[tab.frame.notice]
    assert said in html.unescape(notice) and "Traceback" not in notice


def test_a_change_without_a_number_is_a_sentence():
    for value in (None, "x", float("nan"), True):
        with pytest.raises(ValueError, match="Type a number first"):
            edit.made("set", Place(), value, True)


def test_models_are_judged_by_text_they_never_saw_or_it_says_what_stands_in(tab, watched):
    seen, _ = tab.frame.read(tab.at("abcabc"))
    judged = validation.held_out(tab.page, seen)
    assert "never trained on" in judged.words and judged.inputs.shape[1] == TINY.context_length
    seen, _ = tab.frame.read(of_model(tab, checkpoint(), "abcabc"))
    judged = validation.held_out(tab.page, seen)
    assert judged.words.startswith("the prompt itself") and judged.inputs.tolist() == [list(seen.ids[:-1])]
    seen, _ = tab.frame.read(of_model(tab, checkpoint(), "a"))
    with pytest.raises(ValueError, match="one token predicts nothing"):
        validation.held_out(tab.page, seen)


def test_a_shipped_model_is_judged_by_its_own_validation_text(tab):
    from pathlib import Path

    from playground.inspection import look
    from playground.storage import load

    shipped = load(Path(__file__).resolve().parents[2] / "checkpoints" / "induction")
    judged = validation.held_out(tab.page, look(shipped, shipped.tokenizer.encode("cage c")))
    assert evaluate(shipped.model, judged.inputs, judged.targets) == pytest.approx(shipped.history.val_loss, abs=0.1)
    assert f"run's validation loss, {shipped.history.val_loss:.4f}, is of another choice of windows" in judged.beside
    said = survey_of(look(shipped, shipped.tokenizer.encode("cage c")), judged)[1]
    assert said == judged.words + judged.beside, "where the whole model's loss is told, too"
    own = corpus_from_language("copy", n_characters=1_000, n_validation=20_000).windows("val", 48, 2048 // 48)
    assert torch.equal(own[0], judged.inputs) and torch.equal(own[1], judged.targets)


def test_one_weight_is_reckoned_by_hand_and_agrees(tab):
    for which, name in (("q", "blocks.1.attention.qkv.weight"), ("head.weight", "head.weight")):
        updates = tab.frame.update(
            tab.at("abcabc", view="learn", place=(1, 2, 5, 0), learn_matrix=which, learn_row=2, learn_column=99)
        )
        receipt = updates[tab.component("learn_weight")]
        assert "row 2, column 15" in receipt  # the nearest there is
        difference = receipt.split("by hand − in the model</td><td>")[1].split("<")[0].replace("−", "-")
        assert abs(float(difference)) < 1e-7
        assert name in html.unescape(updates[tab.component("learn_table")])
    before, after = (drawn(updates, tab.component(f"learn_{part}")) for part in ("before", "after"))
    step = drawn(updates, tab.component("learn_step"))
    assert np.allclose(after - before, step, atol=1e-6) and np.abs(step).max() > 0


def test_what_muon_does_is_measured_alike_on_gradient_and_step():
    gradient = torch.diag(torch.tensor([8.0, 4.0, 2.0, 1.0, 0.0, 0.0]))
    moved = torch.diag(torch.tensor([0.06, 0.05, 0.04, 0.03, 0.0, 0.0]))
    model = checkpoint(seed=1).model
    report = optimizer_step(model, [1, 2, 3], rule="muon")
    name, weights = "blocks.0.attention.out.weight", torch.ones(6, 6)
    after = weights * (1 - report.learning_rates["muon"] * report.config.weight_decay) - moved
    made = {"before": {name: weights}, "gradients": {name: gradient}, "after": {name: after}}
    note = muon_note(Matrix("W", name), dataclasses.replace(report, **made), 0)
    assert "gradient's 4 directions (singular values), the strongest is 4.0 times as strong as the middle one" in note
    assert "8.0 times as the weakest; of the step's 4 strongest, weight decay apart, it is 1.5 times" in note
    assert "2.0 times as the weakest." in note

    other = torch.diag(torch.tensor([3.0, 3.0, 3.0, 0.0, 0.0, 0.0]))  # another expert, above it
    experts = {"before": (weights, weights), "gradients": (other, gradient), "after": (weights - moved, after)}
    made = {kind: {name: torch.stack(both)} for kind, both in experts.items()}
    of_second = muon_note(Matrix("W", name), dataclasses.replace(report, **made), 7)
    assert of_second == note.replace("the whole matrix", "each expert's matrix")
    assert "gradient's 3 directions" in muon_note(Matrix("W", name), dataclasses.replace(report, **made), 5)
    assert "Of the 6 singular values that a matrix of this shape has, the other 2 are below a millionth" in note


def test_a_gradient_that_is_rounding_says_so_and_few_directions_are_worded_rightly():
    """With one token to look at, every weight is 1 whatever queries and keys say."""
    model = checkpoint(seed=1).model
    report = optimizer_step(model, [1, 2], rule="muon")
    q, v = (head_matrix(model.config, kind, 1, 2) for kind in "qv")
    assert "nothing: those of all weights" in picture(q, report, "gradient", 0, 0)[1], "or 0, on another processor"
    assert "of all weights" not in picture(v, report, "gradient", 0, 0)[1]
    noise = dataclasses.replace(report, gradients={q.name: 1e-10 + 0 * report.gradients[q.name]})
    assert "is rounding, nearly nothing: those of all weights" in picture(q, noise, "gradient", 0, 0)[1]
    assert "made of a gradient that is rounding" in picture(q, noise, "step", 0, 0)[1]
    seen = optimizer_step(model, [1, 2, 3, 1], rule="muon")
    assert "of all weights" not in picture(q, seen, "gradient", 0, 0)[1]
    for strengths, said in (
        ([0, 0], "is nothing"),
        ([2, 0], "a single direction (singular value), so there is nothing"),
        ([8, 2], "2 directions (singular values), the strongest is 4.0 times as strong as the other; of the step's 2"),
        ([1e-9, 2e-10], "is rounding, nearly nothing beside the others, and becomes a step of full size"),
    ):
        gradient = torch.diag(torch.tensor([*map(float, strengths), 0.0, 0.0]))
        made = {"before": {"W.weight": torch.ones(4, 4)}, "gradients": {"W.weight": gradient}}
        made |= {
            "after": {"W.weight": torch.ones(4, 4) - gradient},
            "rules": {"W.weight": "muon"},
            "decays": {"W.weight": seen.config.weight_decay},
        }
        assert said in muon_note(Matrix("W", "W.weight"), dataclasses.replace(seen, **made), 0)
    tiny = optimizer_step(model, [1, 2], rule="adamw")
    assert "This one does not: beside the 10⁻⁸" in weight_receipt(q, tiny, 0, 0)


def test_a_moment_shows_the_pattern_and_the_prediction_of_then(tab):
    updates = tab.frame.update(tab.at("abcabc", view="replay", place=(1, 2, 5, 1), replay_slider=0))
    then = checkpoint(seed=1).model
    then.load_state_dict({name: tensor.half().float() for name, tensor in then.state_dict().items()})
    from playground.model import trace

    seen = trace(then, torch.tensor([LETTERS.encode("abcabc")]))
    cells = drawn(updates, tab.component("replay_pattern"))
    assert np.allclose(np.nan_to_num(cells), seen["pattern", 1][0, 2].numpy(), atol=1e-5)
    lines = updates[tab.component("replay_timeline")]["figure"]["data"]
    mine = next(line for line in lines if line["name"] == "L1 H2")
    assert numbers_of(mine["customdata"]).tolist() == [0, 10, 30]
    assert np.allclose([step_at(x) for x in numbers_of(mine["x"])], [0, 10, 30], atol=1e-3)
    # a, b, c at 3, 4, 5 have earlier copies; what followed them stands at 1, 2, 3
    expected = np.mean([seen["pattern", 1][0, 2, t, t - 2].item() for t in (3, 4, 5)])
    assert numbers_of(mine["y"])[0] == pytest.approx(expected, abs=1e-5)
    for nonsense in (None, "x", float("nan"), -5, 10**9):
        updates = tab.frame.update(tab.at("abcabc", view="replay", replay_slider=nonsense))
        assert updates[tab.frame.notice] == ""


def test_a_model_too_large_for_a_view_is_told_so(tab, monkeypatch):
    monkeypatch.setattr(learn, "MOST_PARAMETERS", 10)
    notice = tab.frame.update(tab.at("abc", view="learn"))[tab.frame.notice]
    assert "a step is taken here for models of up to 10" in html.unescape(notice)


def test_a_run_keeps_its_moments_to_look_back_at_and_those_of_another_future_go(tmp_path):
    from playground.inspection.replay import replay
    from playground.service.board import Board
    from playground.service.models import Registry
    from tests.ui.runs import ANNA, small_spec, until

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
    steps = registry.get(job.id, ANNA).snapshots.steps
    assert steps[-1] == 30 and set(made.snapshots.steps) <= set(steps)
    assert "the last tenth of your text" in unseen(jobs.source_of(job.checkpoint), job.checkpoint).words


def test_fewer_moments_are_kept_of_larger_models():
    from playground.model import PRESETS
    from playground.service.limits import PUBLIC

    assert PUBLIC.snapshots(PRESETS["small"]) == 40
    assert 4 <= PUBLIC.snapshots(PRESETS["medium"]) < 20
    assert PUBLIC.snapshots(PRESETS["gpt2-small"]) == 0


def test_where_no_moments_were_kept_no_empty_frames_are_shown(tab):
    bare = tab.frame.update(of_model(tab, checkpoint(TINY), "abc", view="replay"))
    assert [u.visible for c, u in bare.items() if isinstance(c, gr.Column)] == [False, False, True]
    assert TOO_LITTLE["replay"] in html.unescape(bare[tab.component("replay-nothing")]) and not bare[tab.frame.notice]
    assert tab.component("replay-timeline") not in bare


def test_a_head_of_the_model_before_is_no_error_after_the_lists_have_changed(tab):
    for picker in tab.frame.pickers:  # what Gradio does with an update: it builds the component anew for the session
        anew = picker.__class__(**{**picker.constructor_args, "choices": [("0", 0), ("1", 1)], "render": False})
        assert anew.preprocess(3) == 3 and anew.preprocess({}) is None and anew.get_block_name() == "dropdown"


def test_a_change_that_changes_nothing_is_said_to_be_none():
    """“that gains 0.0000 ± 0.0000” was said of removing a mask that was not there."""
    said = edit.said_of(Cost(1.5, 1.5, 0.0), "a text")
    assert "no difference to four digits" in said and "gains" not in said and "costs" not in said
    assert "costs 0.0100 ± 0.0010" in edit.said_of(Cost(1.5, 1.51, 0.001), "a text")


def test_a_step_is_measured_on_the_largest_weight_and_none_is_no_step():
    weights, step = torch.full((80, 4), 0.01), torch.zeros(80, 4)
    weights[70, 0], step[0, 0] = 2.0, 0.02  # twice what it moves, beside a hundredth of the scale
    report = optimizer_step(checkpoint(seed=1).model, [1, 2, 3], rule="sgd")

    def told(before, step, name="after"):
        made = {"before": {"W": before}, "after": {"W": before + step}, "gradients": {"W": 0 * step}}
        return picture(Matrix("W", "W"), dataclasses.replace(report, **made), name, 0, 0)

    _, words = told(weights, step)
    assert (
        "of all 320 weights, the one that moved farthest did so by 0.02, 1 % of the largest weight before (2)" in words
    )
    assert "which no eye sees" in words
    scales = [told(weights, step, name)[0]["data"][0]["zmax"] for name in ("before", "after")]
    assert scales == [2.0, 2.0], "the largest weight lies outside what is drawn"
    assert "nothing moved" in told(weights, 0 * step)[1] and "nothing moved" in told(weights, 0 * step, "step")[1]
    assert "all weights were 0, and none is now further from it than 0.02" in told(0 * weights, step)[1]


def test_each_moment_has_its_own_most_probable_token():
    def seen(logits):
        trace = {"logits": torch.tensor([[logits]])}
        return SimpleNamespace(trace=trace, tokens=["c"], token_label=lambda token: "abcdefghijkl"[token])

    then, end = seen([0.0, 1.0] + [0.5] * 10), seen([9.0, 0.0] + [5.0] * 10)
    _, words = prediction(end, then, Place(0, 0, 0, 0), 1, 500)
    early, late = then.trace["logits"][0, 0].softmax(-1), end.trace["logits"][0, 0].softmax(-1)
    assert words == (
        f"After 0 “c”. Most probable at step 1: “b” with {percent(float(early[1]))}; in the end: “a” with "
        f"{percent(float(late[0]))} ({percent(float(early[0]))} then)."
    ), "the first is drawn, little as both moments make of it"
    assert "Most probable in the end: “a”" in prediction(end, end, Place(0, 0, 0, 0), 500, 500)[1]


def test_changes_belong_to_the_model_that_they_were_made_on_and_come_back_with_it(tab, watched):
    """A head switched off in the worked example stood in force for the run, and went into its link."""
    other = tab.page.registry.add(VISITOR, dataclasses.replace(watched, name="Run 7"))
    frame, edits, code = tab.frame, tab.component("edit-list"), changes.coded(SwitchOff(0, "head", 0))
    values = tab.at("abcab", "walk", edit_list=[code])

    def opened(more=()) -> dict:
        """The next answer, whose values the page sends from then on."""
        values.update({tab.page.model: tab.model_id, frame.subject: MODEL, **dict(more)})
        updates = frame.update(values)
        values.update({c: updates[c] for c in (frame.kept, frame.view) if c in updates})
        values[edits] = updates[edits]["value"] if edits in updates else values[edits]
        return updates

    said = opened()[frame.notice]
    assert values[edits] == [code] and "head 0 of layer 0 switched off. This view shows the model as it is" in said
    for chosen in ({frame.subject: "pronoun"}, {tab.page.model: other}):
        assert "In force" not in opened(chosen)[frame.notice] and values[edits] == []
        shown = opened({**chosen, frame.view: "edit"})
        assert f"those of “{watched.name}”" in shown[frame.notice]
        assert "Nothing is changed yet" in shown[tab.component("edit-cards")]
        assert "In force" in opened({frame.view: "heads"})[frame.notice] and values[edits] == [code]
    opened({frame.prompt: ""})
    opened({tab.page.model: other, frame.prompt: ""})
    assert values[edits] == [], "a prompt that cannot be read keeps nothing in force"


def test_changes_that_came_with_a_link_to_a_model_still_to_be_trained_wait_for_it():
    kept, now = changes.exchanged("", "shipped-stories", ["x"], awaited=True)
    assert now == [] and changes.exchanged(kept, "pronoun", now)[1] == []
    assert changes.exchanged(kept, "a-run", now)[1] == ["x"]
    assert changes.exchanged("", "a-run", ["x"])[1] == ["x"], "one that is here has them at once"
    assert changes.exchanged("", "pronoun", ["x"], awaited=True)[1] == ["x"], "and a worked example always is"
    for odd in ("{", "[1", '["a", 7]', '["a", {"b": 9}]', 7, None):
        changes.exchanged(odd, "a", ["x"])


def test_a_rate_is_the_runs_only_where_a_run_had_it(tab):
    def said(prompt: str, rule: str, **more) -> str:
        return tab.frame.update(tab.at(prompt, view="learn", learn_rule=rule, **more))[tab.component("learn_cards")]

    assert all("peak by the run&#x27;s settings" in said("abcab", rule) for rule in (learn.TRAINED, "adamw", "muon"))
    assert "not the run&#x27;s, but the usual one" in said("abcab", "sgd")
    assert "not the run&#x27;s, but the usual one" in said("", learn.TRAINED, subject="pronoun")
