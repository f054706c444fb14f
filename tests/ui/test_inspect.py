"""Inspect: what is selected, drawn and said in every view, for every kind of model and whatever a browser sends."""

import json
import math
import re

import numpy as np
import pytest
import torch

from playground.engine import generate
from playground.inspection import look
from playground.inspection.cost import edit_cost, effect
from playground.inspection.edits import EditCell, RemoveMask, SwapPattern, SwitchOff, edits_tap, to_dict
from playground.inspection.heads import HABITS
from playground.inspection.receipts import receipt
from playground.inspection.walk import step_names
from playground.model import Pass, Transformer, trace
from playground.service.limits import EDITS, LOCAL, PUBLIC
from playground.service.models import SHIPPED_FOLDER, Registry
from playground.storage import Checkpoint, load
from playground.storage.snapshots import find_snapshots, keep_snapshot
from playground.training import History, TrainConfig
from playground.ui.tabs.inspect import edits, kv_cache, selection, steps, strip, training, validation
from playground.ui.tabs.inspect import receipt as receipts
from playground.ui.tabs.inspect.beginnings import COPYING
from playground.ui.tabs.inspect.looks import KEPT
from playground.ui.tabs.inspect.pictures import HEIGHT
from playground.ui.tabs.inspect.selection import Selection, ranking
from playground.words.numbers import share
from tests.figures.decoded import numbers_of
from tests.model.configs import TINY, VARIANTS
from tests.ui.inspecting import LETTERS, Inspecting, check_figures, drawn, made_up

OFF = to_dict(SwitchOff(1, "head", 2))


@pytest.fixture(scope="module")
def tab() -> Inspecting:
    return Inspecting(made_up(TINY.replace(context_length=80)), PUBLIC)


@pytest.fixture(scope="module")
def copying() -> Inspecting:
    """The shipped model that learned to copy."""
    return Inspecting(load(SHIPPED_FOLDER / "induction"))


# ---- the selection ---------------------------------------------------------------------------------------------------


def test_it_opens_on_the_head_that_matters_most_the_last_token_and_its_largest_weight(copying):
    chosen = copying.shown("bdfh bdfh\ncage c").selection
    seen = copying.look("bdfh bdfh\ncage c")
    taps = {at: edits_tap([SwitchOff(at[0], "head", at[1])], seen.config) for at in ((0, 0), (0, 1), (1, 0), (1, 1))}
    owed = {at: effect(seen.model, torch.tensor([seen.ids]), tap).divergence for at, tap in taps.items()}
    assert (chosen["layer"], chosen["head"]) == max(owed, key=owed.get) == ranking(seen)[0]
    assert sorted(owed, key=owed.get, reverse=True) == ranking(seen)
    row = seen.pattern(chosen["layer"])[chosen["head"], seen.length - 1]
    assert chosen["query"] == seen.length - 1 and row[chosen["key"]] == row.max()
    anew = {**chosen, "prompt": "edgh ed"}
    best, owner = ranking(copying.look("edgh ed"))[0], (chosen["layer"], chosen["head"])
    assert best != owner
    for suggested, expected in ((owner, best), (None, owner)):  # a head that the visitor chose stays
        there = copying.shown(**anew | {"suggested": suggested}).selection
        assert (there["layer"], there["head"]) == expected


@pytest.mark.parametrize(
    "place", [(9, 9, 999, 999), (-1, -5, -9, -9), (None, "x", [], {}), (1e300, float("nan"), 0, 0)]
)
def test_any_place_that_a_browser_sends_is_held_to_what_there_is(tab, place):
    names = ("layer", "head", "query", "key")
    chosen = tab.shown("abcab", **dict(zip(names, place))).selection
    assert all(0 <= chosen[name] < most for name, most in zip(names, (2, 4, 5, 5)))


def test_fields_that_make_no_sense_are_as_at_first():
    odd = {"view": 7, "head": [], "edits": "x", "why": {}, "prompt": 3, "unheard of": 1, "step": "softmax"}
    assert Selection.read(odd) == Selection(step="softmax")
    assert Selection.read(json.loads(json.dumps(Selection(layer=1, edits=(OFF,)).to_dict()))).edits == (OFF,)


def test_a_look_is_kept_and_made_anew_when_its_model_was_replaced(tab):
    first = tab.look("abca")
    assert tab.look("abca") is first
    old = first.checkpoint
    other = Checkpoint(Transformer(old.config, seed=9), LETTERS, History(), "tried")
    tab.page.registry.add(tab.visitor, other, model_id=tab.model_id)
    assert tab.look("abca").checkpoint is other
    tab.page.registry.add(tab.visitor, old, model_id=tab.model_id)
    for length in range(1, 30):
        tab.look("a" * length)
    assert len(tab.looks) <= KEPT


def test_slots_depend_on_what_they_are_made_from_and_on_nothing_else(tab):
    def digests(head: int, key: int) -> dict[str, str]:
        shown = tab.shown("abcab", layer=0, head=head, query=4, key=key)
        return {name: slot.digest for name, slot in shown.slots.items()}

    at, head = digests(1, 2), digests(2, 2)
    assert digests(1, 2) == at and {name for name in at if at[name] != digests(1, 1)[name]} == {"pattern"}
    assert {"grid", "pattern", "headline", "tokens", "head-buttons"} <= {n for n in at if at[n] != head[n]}
    assert at["next"] == head["next"] and at["ideas"] == head["ideas"]


# ---- the strip -------------------------------------------------------------------------------------------------------


def test_the_strip_shades_by_the_models_own_weights_and_says_its_next_token_with_and_without_edits(tab):
    seen = tab.look("abcabc")

    def shades(html):
        return [float(each) for each in re.findall(r"--weight:([\d.]+)", html)]

    one = shades(tab.made("abcabc", layer=1, head=2, query=4)["tokens"])
    assert np.allclose(one, seen.pattern(1)[2, 4], atol=5e-4)
    mean = np.mean([seen.pattern(layer)[:, 4].numpy() for layer in range(2)], axis=(0, 1))
    assert np.allclose(shades(tab.made("abcabc", query=4, strip="all")["tokens"]), mean, atol=5e-4)
    usual = seen.trace["logits"][0, -1].softmax(-1)
    plain = tab.made("abcabc")["next"]
    assert f"<bdi>{seen.token_label(int(usual.argmax()))}</bdi>" in plain and f"{100 * usual.max():.0f}" in plain
    tap = edits_tap([SwitchOff(1, "head", 2)], seen.config)
    after = seen.model(torch.tensor([seen.ids]), Pass(tap=tap)).logits[0, -1].softmax(-1)
    edited = tab.made("abcabc", edits=[OFF])
    assert f"{100 * after.max():.0f}" in edited["next"]
    assert json.dumps({"edits": []}).replace('"', "&quot;") in edited["edits-in-force"]
    off = tab.made("abcabc", edits=[OFF], layer=1, head=2)["headline"]
    assert f"Head 1.2 is off: “{seen.token_label(int(after.argmax()))}” {share(float(after.max().detach()))}" in off
    place = "1 “b”"  # the token that a prediction follows, unless it is the last
    said = {query: tab.made("abca", layer=0, head=1, query=query)["headline"] for query in (None, 3, 1)}
    assert place not in said[None] and said[None] == said[3] and place in said[1]
    for prompt, unseen in (("aXY", "“X”, “Y”"), ("ab" * 60, "has 120 tokens")):
        assert unseen in tab.made(prompt)["notes"]
    pickers = tab.made("abcab", view="steps", step="softmax")["step-head"]
    assert tab.made("abcab", view="steps", step="embed")["step-head"] == "", "no layer and no head comes in there"
    assert pickers.count('data-resets="key"') == 2, "the cell of the head before is not kept"


def test_texts_of_tokens_are_escaped_everywhere(tab):
    folds = dict.fromkeys(("why", "compare", "change", "roles"), True)
    for content in tab.made("<b>&<a>", edits=[OFF], **folds).values():
        if isinstance(content, str):
            assert "<b>&<" not in content and "<a>" not in content
        elif content:
            assert "“<" not in json.dumps(content["figure"]) and not re.search(r'"\d+ <', json.dumps(content["figure"]))


# ---- the chosen head and the grid ------------------------------------------------------------------------------------


def test_what_is_drawn_is_the_models_pattern_and_with_edits_that_of_the_edited_pass(tab):
    seen = tab.look("abcabcab")
    made = tab.made("abcabcab", layer=1, head=2, query=6, key=3)
    pattern = drawn(made["pattern"])
    assert np.allclose(np.nan_to_num(pattern), seen.trace["pattern", 1][0, 2], atol=1e-6) and np.isnan(pattern[0, 1])
    first = made["grid"]["figure"]["data"][0]
    layer, head = map(int, re.match(r"head (\d+)\.(\d+)", first["name"]).groups())
    assert (layer, head) == ranking(seen)[0]
    assert np.allclose(numbers_of(first["z"])[7], seen.trace["pattern", layer][0, head, 7], atol=1e-6)
    unmasked = tab.made("abcabcab", layer=1, head=2, edits=[to_dict(RemoveMask())])["pattern"]
    tap = edits_tap([RemoveMask()], seen.config)
    edited = trace(seen.model, torch.tensor([seen.ids]), edit=tap)["pattern", 1][0, 2]
    assert np.allclose(drawn(unmasked), edited, atol=1e-6)
    two = tab.made("abcabcab", layer=1, head=2, compare=True, with_layer=0, with_head=9)
    for name, (layer, head) in {"own": (1, 2), "with": (0, 3)}.items():
        assert f"Head {layer}.{head}" in two[f"{name}-headline"]
        assert np.allclose(np.nan_to_num(drawn(two[f"{name}-pattern"])), seen.pattern(layer)[head], atol=1e-6)


def test_a_click_opens_the_receipt_or_chooses_the_head_and_nonsense_is_refused(tab):
    chosen = tab.shown("abcab", {"slot": "pattern", "index": [3, 1]}, layer=0, head=0).selection
    assert (chosen["query"], chosen["key"], chosen["why"]) == (3, 1, True)
    made = tab.made("abcab", layer=0, head=0, query=3, key=1, why=True)
    line = made["head-buttons"].partition("</button>")[2]
    assert "from token 3 “a” to token 1 “b”" in made["pattern"]["summary"] and 'aria-pressed="true"' in line
    assert "true}" in line and "false}" not in line, "the button opens the receipt and never closes it"
    owner = ranking(tab.look("abcab"))[3]
    chosen = tab.shown("abcab", {"slot": "grid", "trace": 3}, layer=0, head=0, query=4).selection
    assert (chosen["layer"], chosen["head"]) == owner and chosen["key"] == selection.strongest_key(
        tab.look("abcab"), *owner, 4
    )
    for said in (None, [9, 9], "x", [[], {}], [0.5, 1], [True, 0], [-1, 0], [math.inf, 0]):
        for slot in ("pattern", "grid", "worth"):
            with pytest.raises(ValueError, match="Click again"):
                tab.shown("abc", {"slot": slot, "index": said, "trace": said}, worth=True)
    assert tab.shown("abc", {"slot": "of another page", "index": [0, 0]}).selection["query"] == 2


@pytest.mark.parametrize("language", COPYING)
def test_the_tab_opens_on_a_prompt_that_one_head_decides(language):
    checkpoint = Registry(PUBLIC).get({"copy": "shipped-induction"}.get(language, f"shipped-{language}"), None)
    seen = look(checkpoint, checkpoint.tokenizer.encode(COPYING[language]))
    layer, head = ranking(seen)[0]
    found = strip.effect_of(seen, [SwitchOff(layer, "head", head)], seen.length - 1)
    token = int(found.before.argmax())
    assert found.before[token] > 0.9 and found.after[token] < 0.3 and int(found.after.argmax()) != token


def test_one_token_an_unmasked_model_and_the_worked_examples_are_drawn(tab):
    folds = dict.fromkeys(("why", "compare", "change", "roles"), True)
    for more in (
        {},
        {"subject": "pronoun"},
        {"subject": "notebook"},
        {"model": tab.add(made_up(TINY.replace(causal=False)))},
    ):
        made = tab.made("a" if more else "b", **more, **folds)
        assert made["pattern"]["figure"] and made["receipt"]
    with pytest.raises(ValueError, match="no example"):
        tab.made("a", subject="of none")


# ---- the receipt -----------------------------------------------------------------------------------------------------


def test_the_receipt_shows_the_numbers_it_has(tab):
    seen = tab.look("abcab")
    r = receipt(seen, 1, 2, 4, 1)
    text = receipts.receipt_html(r, seen).replace("−", "-")
    numbers = (r.dot, r.score, r.exponential, r.exponential_sum, r.weight, *r.q, *r.k, *r.products, *r.v, *r.part, *r.z)
    assert all(f"{number:.8f}" in text or abs(number) < 1e-8 for number in numbers)
    assert f"{r.largest_difference:.1e}" in text
    assert "hidden" in receipts.receipt_html(receipt(seen, 1, 2, 1, 4), seen)


# ---- edits -----------------------------------------------------------------------------------------------------------


def test_the_form_makes_the_edit_that_it_names(tab):
    made = {
        "head": SwitchOff(1, "head", 2), "attention": SwitchOff(1, "attention"), "layer": SwitchOff(1, "layer"),
        "feed-forward": SwitchOff(1, "feed-forward"), "uniform": SwapPattern(1, 2, "uniform"),
        "previous": SwapPattern(1, 2, "previous"), "set": EditCell(1, 2, 5, 3, 0.75), "mask": RemoveMask(),
        "mask here": RemoveMask(1),
    }  # fmt: skip
    assert set(made) == set(edits.CHANGES)
    for name, expected in made.items():
        at = tab.at("abcabcab", layer=1, head=2, query=5, key=3, edit=name, edit_value=0.75)
        assert edits.made(at) == expected
        assert tab.at("abcabcab", edits=[to_dict(expected)]).edits == [expected]
    listed = [to_dict(made["head"]), to_dict(made["set"])]
    bars = tab.made("abcabcab", query=5, edits=listed, change=True)["edit-bars"]["figure"]["data"]
    seen = tab.look("abcabcab")
    after = seen.model(torch.tensor([seen.ids]), Pass(tap=edits_tap([made["head"], made["set"]], seen.config))).logits
    assert np.isclose(numbers_of(bars[1]["x"]).max(), after[0, 5].softmax(-1).max().item(), atol=1e-5)


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([to_dict(SwitchOff(9, "head", 0))], "no layer 9"),
        ([{}], "cannot.*read"),
        ([{"kind": "off", "layer": {}}], "."),
        ([OFF] * (EDITS + 1), "cannot.*read"),
    ],
)
def test_edits_that_do_not_fit_are_refused_in_a_sentence(tab, listed, said):
    with pytest.raises(ValueError, match=said):
        tab.shown("abcabc", edits=listed)


def test_a_click_switches_a_part_off_and_its_cost_is_that_on_held_out_text_whatever_the_prompt(copying):
    chosen = copying.shown("bdfh bd", {"slot": "worth", "index": [1, 0]}, worth=True).selection
    assert chosen["edits"] == [to_dict(SwitchOff(1, "head", 0))]
    chosen = copying.shown("bdfh bd", {"slot": "worth", "index": [0, 3]}, worth=True, edits=chosen["edits"]).selection
    assert chosen["edits"][1] == to_dict(SwitchOff(0, "feed-forward"))
    listed = [to_dict(SwitchOff(1, "head", 0))]
    first, second = (copying.made(prompt, edits=listed, change=True)["edit-cost"] for prompt in ("abc abc", "dea dea"))
    assert first == second and "On unseen" in first
    judged = validation.held_out(copying.page, copying.look("abc abc"))
    found = edit_cost(copying.look("abc abc").model, judged.inputs, judged.targets, [SwitchOff(1, "head", 0)])
    assert f"{found.before:.5f}" in first and f"{found.after:.5f}" in first
    assert copying.made("abc abc", change=True)["edit-cost"] == ""
    made = copying.made("abc abc", edits=[to_dict(EditCell(1, 0, 2, 1, 0.5))], change=True, roles=True)
    assert "On this prompt" in made["edit-cost"] and "unseen" not in made["edit-cost"], "no other text has this cell"
    roles = made["roles"]
    assert roles.count("<button") == 4 and roles.count('aria-pressed="true"') == 1
    assert roles.index("finds it by position") < roles.index("without a clear role"), "heads with a role come first"


# ---- what heads do, and the text that judges -------------------------------------------------------------------------


def test_a_model_that_leaves_takes_along_what_was_worked_out_from_it(tab):
    import gc
    import weakref

    other = made_up(seed=6)
    model_id, gone = tab.add(other), weakref.ref(other.model)
    tab.made("abcab", model=model_id, why=True, change=True, edits=[OFF])
    del other
    tab.page.registry.remove(model_id, tab.visitor)
    gc.collect()
    assert gone() is None


EVERY = (
    {"view": "steps", "lens": True},
    {"view": "training"},
    {"view": "training", "training": "moments"},
    {"view": "cost"},
)


@pytest.fixture(scope="module")
def watched(tmp_path_factory) -> Inspecting:
    """A run of which three moments were kept."""
    folder, last = tmp_path_factory.mktemp("run"), made_up(seed=3)
    for step, seed in ((0, 1), (10, 2), (30, 3)):
        keep_snapshot(folder, step, made_up(seed=seed).model.state_dict())
    about = {"training": TrainConfig(optimizer="adamw").to_dict(), "language": "copy", "recorded": True}
    snapshots = find_snapshots(folder, last.config)
    return Inspecting(Checkpoint(last.model, LETTERS, History(), "watched", about, snapshots), LOCAL)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_model_has_every_view_in_figures_that_plotly_takes(watched, name):
    other = watched.add(made_up(VARIANTS[name]))
    folds = dict.fromkeys(("why", "compare", "change"), True)
    for view in ({"edits": [to_dict(SwitchOff(1, "head", 2))], **folds}, *EVERY):
        figures = check_figures(watched.made("abcabc", model=other, layer=1, head=1, query=4, key=1, **view))
        assert figures > 4 or "view" in view
    seen = watched.at("abcabc", model=other).look
    for step in step_names(seen, 1):
        made = watched.made("abcabc", model=other, view="steps", step=step, layer=1, head=1, query=3, key=1)
        assert made["step-chart"]["figure"]["layout"]["height"] <= HEIGHT, step


@pytest.mark.parametrize("view", EVERY)
def test_one_token_an_example_and_escaped_texts(watched, view):
    watched.made("a", **view)
    watched.made("", subject="pronoun", **view)
    for content in watched.made("<b>&<b>", **view).values():
        assert "<b>&<" not in json.dumps(content) and "“<b" not in json.dumps(content)


def test_a_click_in_a_steps_picture_chooses_what_it_draws(watched):
    def click(step: str, **click) -> dict:
        at = {"layer": 1, "head": 0, "query": 5, "key": 0}
        return watched.shown("abcabc", {"slot": "step-chart", **click}, view="steps", step=step, **at).selection

    chosen = click("softmax", index=[4, 2])
    assert (chosen["query"], chosen["key"]) == (4, 2)
    assert click("norm", index=[3, 7])["query"] == 3
    assert click("output", index=[2, 0])["head"] == 2
    assert click("add", index=[0, 4])["query"] == 4 and click("mlp", index=[0, 1])["query"] == 5
    for odd in (None, [99, 0], "x", [0.5, 0]):
        with pytest.raises(ValueError, match="Click again"):
            click("softmax", index=odd)


def test_the_lens_draws_the_models_own_probabilities(watched):
    seen = watched.look("abcabcab")
    logits = seen.model(torch.tensor([seen.ids])).logits[0].detach().double().numpy()
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    at = {"view": "steps", "lens": True, "query": 5}
    assert np.allclose(drawn(watched.made("abcabcab", **at)["lens-map"])[-1], chances.max(1), atol=1e-5)


def test_a_slot_of_the_steps_depends_on_what_it_shows_and_on_nothing_else(watched):
    def digests(**chosen) -> dict[str, str]:
        at = {"layer": 1, "head": 2, "query": 5, "key": 3, "step": "softmax", "lens": True, **chosen}
        return {name: slot.digest for name, slot in steps.slots(watched.at("abcabc", view="steps", **at)).items()}

    at = digests()
    changed = {name: {n for n in at if at[n] != digests(**{name: 0})[n]} for name in ("layer", "head", "query", "key")}
    own = {"step-chart", "step-how"}
    assert changed["key"] == changed["head"] == own and changed["layer"] == {*own, "step-heading", "step-row"}
    assert changed["query"] - own == {"lens-map"}
    assert at == digests(row=3, training="moments", matrix="k", why=True)


def test_fields_of_a_view_are_held_to_what_the_model_has(watched):
    def held(module, **chosen) -> dict:
        return module.within(watched.at("abcabc", layer=0, head=1, **chosen))

    assert held(steps, step="arrive")["step"] == "norm"
    odd = held(training, matrix="of another model", row=10**9, column=-3)
    D = TINY.d_model // TINY.n_heads
    assert {"matrix": "q", "row": D - 1, "column": 0}.items() <= odd.items()
    assert held(training, training="moments", look_at="x")["look_at"] in HABITS
    fine = {"matrix": "head.weight", "row": 9, "column": None}
    fine |= {"look_at": "first"}
    assert held(training, training="moments", **fine) == fine
    for which in ("q", "head.weight"):  # one weight is reckoned by hand and agrees
        made = watched.made("abcabc", view="training", layer=1, head=2, matrix=which, row=2, column=99)
        difference = made["training-weight"].rpartition("in the model</td><td>")[2].partition("<")[0].replace("−", "-")
        assert abs(float(difference)) < 1e-7
    assert made["training-picture"]["summary"].startswith("Framed: row 2, column 15, gradient ")
    framed = watched.made("abcabc", view="training", matrix="head.weight")["training-picture"]
    sizes, (_, frame) = np.abs(drawn(framed)), framed["figure"]["layout"]["shapes"]
    assert sizes.max() == sizes[int(frame["y0"] + 1), int(frame["x0"] + 1)] > 0, "the largest gradient is framed"
    clicked = watched.shown("abcabc", {"slot": "training-picture", "x": 3, "y": 10**9}, view="training").selection
    assert (clicked["row"], clicked["column"]) == (D - 1, 3)
    for name, said in {
        "gradient": "Largest gradient in output",
        "step": "Largest move in output",
        "weight": "",
    }.items():
        seen = watched.made("abcabc", view="training", matrix="head.weight", picture=name)["training-headline"]
        assert "AdamW lowers the loss from" in seen and said in seen and ("Largest" in seen) == (name != "weight")
    assert made["training-slips"].count("<details") == 1 and made["training-slips"].count("<p>") == 2


# ---- through training ------------------------------------------------------------------------------------------------


def test_a_moment_shows_the_pattern_and_the_prediction_of_then(watched):
    at = {"view": "training", "training": "moments", "layer": 1, "head": 2, "query": 5, "key": 1}
    made = watched.made("abcabc", moment=0, **at)
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
    assert [[0, 10, 30][int(shade[end])] for end in ("x0", "x1")] == rose, "the steps that the headline names"
    mine = next(line for line in figure["data"] if line["name"] == "head 1.2")
    assert numbers_of(mine["x"]).tolist() == [0, 1, 2], "where the slider has these moments"
    # a, b, c at 3, 4, 5 have earlier copies; what followed them stands at 1, 2, 3
    expected = np.mean([seen["pattern", 1][0, 2, t, t - 2].item() for t in (3, 4, 5)])
    assert numbers_of(mine["y"])[0] == pytest.approx(expected, abs=1e-5)
    for nonsense in (None, "x", -5, 10**9):
        assert watched.made("abcabc", moment=nonsense, **at)["moments-pattern"]["figure"]


def test_a_click_in_the_timeline_goes_to_the_nearest_moment(watched):
    at = {"view": "training", "training": "moments", "query": 5, "key": 0}
    for x, moment in ((-1, 0), (0.9, 1), (1.7, 2), (1e9, 2)):
        click = {"slot": "moments-timeline", "x": x}
        assert watched.shown("abcabc", click, **at).selection["moment"] == moment
    shown = watched.shown("abcabc", {"slot": "moments-pattern", "index": [3, 1]}, **at)
    assert (shown.selection["query"], shown.selection["key"]) == (3, 1)
    none = watched.shown("abcabc", model=watched.add(made_up()), **at)
    assert none.selection["training"] == "step" and not any(name.startswith("moments") for name in none.slots)
    assert "Through training" in shown.slots["training-show"].make() and not none.slots["training-show"].make()
    for odd in (None, "x", [1], True):
        with pytest.raises(ValueError, match="Click again"):
            watched.shown("abcabc", {"slot": "moments-timeline", "x": odd}, **at)


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
