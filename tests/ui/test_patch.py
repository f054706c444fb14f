"""Patch, steer, circuit: what these parts of Inspect show, keep and refuse."""

import json
import re
from html import unescape

import pytest

from playground.inspection.edits import SwitchOff, to_dict
from playground.inspection.example import EXAMPLES
from playground.interventions.steering import STRENGTHS
from playground.storage import load
from playground.studies.slips import CHECKPOINTS
from playground.ui.tabs.inspect.steer import steered_pairs
from playground.words.interventions import UNLIKE
from tests.model.configs import VARIANTS
from tests.ui.inspecting import Inspecting, drawn, made_up

OPEN = {"view": "heads", "patch": True, "steer": True, "circuit": True}


@pytest.fixture(scope="module")
def tab() -> Inspecting:
    return Inspecting(load(CHECKPOINTS / "induction"))


@pytest.fixture(scope="module")
def opened(tab) -> dict:
    chosen = tab.shown(None, **OPEN).selection
    return {name: value for name, value in chosen.items() if name not in ("model", "prompt")} | {"at": chosen["prompt"]}


def again(tab, opened, **more):
    chosen = {name: value for name, value in opened.items() if name != "at"} | more
    return tab.made(opened["at"], **chosen)


def test_opening_a_part_brings_two_prompts_that_fit_and_draws_everything(tab, opened):
    assert len(opened["at"]) == len(opened["other"]) and opened["at"] != opened["other"]
    assert opened["towards"] and opened["away"] and opened["steer_layer"] == 1
    assert 0 < opened["strength"] <= 1
    made = again(tab, opened)
    assert len(made["patch-map"]["figure"]["layout"]["shapes"]) == 1, "a frame around the cell that is named"
    assert drawn(made["patch-map"]).shape == (2, len(opened["at"]))
    assert made["pair-ideas"].count("<button") > 1 and " / " in made["pair-ideas"] and not made["circuit-ideas"]
    edited = again(tab, opened, edits=[to_dict(SwitchOff(1, "head", 0))])
    assert edited["patch-kept"] == made["patch-kept"] and "Your edits are left out" in edited["patch-map-headline"]
    assert made["patch-kept"].count("<samp>") == 2 and "Restore" not in made["patch-kept"], "patched before any click"
    assert made["steer-texts"].count("<samp>") == 2 + 5 and made["steer-curve"]["figure"]
    steps = "Head 1.0 gives 61\xa0% of its attention to the “g” of “cage” (the token after an earlier copy). Input for "
    assert f"{steps}this comes from head 0.0 and MLP 0." in made["circuit-headline"]
    heads = again(tab, opened, part="head")["patch-map-headline"]
    boxes = [note["text"] for note in made["circuit"]["figure"]["layout"]["annotations"]]
    assert "goes all the way" in heads and "<b>head 1.0</b><br>100\xa0%" in boxes, "Patch and circuit measure the same"
    lost = {donor: drawn(again(tab, opened, donor=donor)["patch-map"]).tobytes() for donor in ("other", "zero", "mean")}
    assert lost["other"] == drawn(made["patch-map"]).tobytes() and len({*lost.values()}) == 3
    direct = drawn(again(tab, opened, path="direct", donor="resample")["patch-map"])
    assert direct[:, -1].all() and not direct[:, :-1].any()
    assert "Heads" in made["patch-parts"] and "Experts" not in made["patch-parts"], "this model has none"
    clicked = tab.shown(opened["at"], {"slot": "circuit", "index": [0, 1]}, **OPEN, other=opened["other"])
    assert (clicked.selection["layer"], clicked.selection["head"]) == (1, 0)
    alike = tab.made("hgfe hg", view="heads", patch=True, circuit=True, other="cafe ca ")  # one blank more
    assert "<h3>Both prompts lead to almost the same prediction.</h3>" in alike["patch-map-headline"]
    assert "Both prompts lead to almost the same prediction" in alike["circuit-headline"]
    unlike = tab.made("bhfd bh", view="heads", circuit=True, other="faeb ca")
    assert UNLIKE in unlike["circuit-headline"] and UNLIKE not in made["circuit-headline"]


@pytest.mark.parametrize(
    ("name", "works"),
    {"stories": 2, "induction": 0, "dialects-moe": 3, "sentences": 3}.items(),
)
def test_steering_works_on_each_pair_that_it_offers_for_a_shipped_model(name, works):
    """On the processor in fp32."""
    checkpoint = load(CHECKPOINTS / name)
    checkpoint.model.float()
    tab = Inspecting(checkpoint)
    at = tab.at(None, view="heads", steer=True)
    pairs = steered_pairs(at)
    ideas = tab.shown(None, view="heads", steer=True).slots["steer-ideas"].make()
    assert ideas.count("<button") == len(pairs) == works and ("No ready-made example" in ideas) == (not works)
    assert (name == "stories") == ("She → He" in ideas)
    for pair in pairs:
        prompt, other = (checkpoint.tokenizer.decode(ids) for ids in (pair.ids, pair.other))
        alone, opened = (tab.shown(prompt, view="heads", steer=True, other=two).selection for two in ("", other))
        assert alone["towards"] and (opened["towards"], opened["away"]) == (other, prompt)
        slots = tab.shown(**opened).slots
        headline, texts = slots["steer-curve-headline"].make(), slots["steer-texts"].make()
        moves = [json.loads(unescape(move)) for move in re.findall('data-move="(.*?)"', slots["steer-ideas"].make())]
        assert [{**opened, **move} == opened for move in moves].count(True) == 1, "the chosen example is pressed"
        assert {*map(float, re.findall("Strength ([0-9.]+)<", texts))} <= {*STRENGTHS}
        letters = "[a-z]+" if name == "stories" else "[a-z]*"  # words, although its tokens are letters
        least = f"{opened['strength']:g}"
        assert re.search(
            f"“{at.look.token_label(pair.foil)}{letters}” takes the lead at strength {least}\.</h3>", headline
        )
        assert f"At strength {opened['strength']:g}, the validation loss" in headline and "fall apart" not in headline
        strongest = texts.split("<samp>")[2].replace("<mark>", "")  # beside the text at strength 0
        assert strongest.startswith(" " * (name != "stories") + checkpoint.tokenizer.token_text(pair.foil))
    if name == "stories":  # a pair on which steering does not work
        two = {"prompt": "Mia had a red kite. Then Tom has the ", "other": "Mia had a red drum. Then Tom has the "}
        assert tab.shown(**opened | two | {"steered": None}).selection["away"] == prompt, "what a visitor wrote stays"
        shown = tab.shown(**opened | two)
        added = shown.slots["steer-added"].make()
        assert all(word in added for word in ("“Ben”", "“Ana”", "morning Ana")), "the pair that is used, and where"
        ideas = shown.slots["steer-ideas"].make()
        moves = [json.loads(unescape(move)) for move in re.findall('data-move="(.*?)"', ideas)]
        assert all(move["steer_on"] for move in moves), (
            "each example is shown on its own prompt, also once one is chosen"
        )
        assert "kite" not in added and "drum" not in added and shown.selection["prompt"] == two["prompt"]
        assert '<span class="prompt">In the morning Ana came to the sea. </span>' in shown.slots["steer-texts"].make()


def test_a_click_keeps_a_patch_writes_from_there_and_a_second_one_takes_it_back(tab, opened):
    chosen = {name: value for name, value in opened.items() if name != "at"}
    strongest = again(tab, opened, part="head")
    row, column = divmod(int(abs(drawn(strongest["patch-map"])).argmax()), len(opened["at"]))
    click = {"slot": "patch-map", "index": [row, column]}
    kept = tab.shown(opened["at"], click, **{**chosen, "part": "head"}).selection["kept"]
    assert kept == [{"part": "head", "layer": row // 2, "index": row % 2, "place": column}]
    made = again(tab, opened, part="head", kept=kept)
    plain, patched = made["patch-kept"].split("<samp>")[1:]
    assert "are the same" not in made["patch-kept"]
    same = {"part": "residual", "layer": 0, "index": None, "place": 1}  # both prompts have this token
    assert "The texts are the same." in again(tab, opened, kept=[same])["patch-kept"]
    assert plain.split("</samp>")[0] != patched.split("</samp>")[0], "the patch changes what is written"
    assert len(made["patch-map"]["figure"]["layout"]["shapes"]) == 1
    assert tab.shown(opened["at"], click, **{**chosen, "part": "head", "kept": kept}).selection["kept"] == []


def test_patched_stories_are_written_to_the_end_of_a_sentence_and_name_whom_they_are_about():
    tab = Inspecting(load(CHECKPOINTS / "stories"))
    cell = {"part": "residual", "layer": 1, "index": None, "place": 2}
    chosen = {"view": "heads", "patch": True, "other": "Mia lived near the f", "kept": [cell]}
    texts = re.findall("<samp>(.*?)</samp>", tab.made("Max lived near the f", **chosen)["patch-kept"], re.DOTALL)
    assert len(texts) == 2 and all(text.removesuffix("</mark>").endswith((".", "!", "?")) for text in texts)
    assert "<mark>She</mark> had" in texts[1] and "He had" in texts[0] and "<mark>" not in texts[0]
    assert texts[1].count("<mark>") == 1, "where the texts part"
    cell = {"part": "residual", "layer": 3, "index": None, "place": 15}
    chosen |= {"other": "Mia had a red drum. Then Tom has the ", "kept": [cell]}
    said = tab.made("Mia had a red kite. Then Tom has the ", **chosen)["patch-map-headline"]
    first = tab.made(None, view="heads", patch=True)["patch-map-headline"].partition("<details")[0]
    assert "“b” leads with" in first, "the first pair's other answer"
    assert "<h3>Token 15 “i” matters most, in every layer.</h3>" in first
    assert re.search("“b”, a third token, leads with [0-9.]+.%. Before, “k” had 99.98.%.</p>", said)


def test_a_map_of_a_long_prompt_ends_where_patches_stop_doing_anything():
    tab = Inspecting(load(CHECKPOINTS / "stories"))
    prompt = 'Tom lived by the sea. He had a blue ball. Then Ana came to the sea. Ana asked, "May I have the ball?" So '
    made = tab.made(prompt, view="heads", patch=True, other=prompt.replace("Tom", "Max"))
    assert drawn(made["patch-map"]).shape == (4, 3)
    assert "Patching layer 3 at token 1 “o” matters most." in made["patch-map-headline"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"other": "abc"}, "make them equally long"),
        ({"part": "expert"}, "dense model"),
        ({"kept": [{"part": "head", "layer": 0, "index": 9, "place": 0}]}, "no head 9"),
        ({"kept": [{"part": "head", "layer": 0, "index": 0, "place": 99}]}, "not in the map"),
        ({"strength": 1e300, "steer_layer": -3, "kept": [{"x": 1}], "donor": "x", "away": ""}, "at least one"),
        ({"away": " "}, "at least one in each field"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(tab, opened, change, sentence):
    made = again(tab, opened, **{"steer": "away" in change, **change})  # which takes long to draw
    assert any(sentence in str(content) for content in made.values())


@pytest.mark.parametrize("name", ["learned", "post-norm", "experts", "sees the future"])
def test_models_that_nothing_is_known_of_take_two_typed_prompts(name):
    tab = Inspecting(made_up(VARIANTS[name]))
    chosen = {**OPEN, "other": "aae", "towards": "ab", "away": "cd", "steered": None, "steer_layer": 9}
    chosen |= {"typed": True, "part": "head"}
    made = tab.made("abc", **chosen)
    assert drawn(made["patch-map"]).shape == (8, 3 if name == "sees the future" else 2), "the first token is the same"
    assert "ahead of" in made["circuit-headline"] and made["steer-texts"].count("<samp>") == 2 + 5
    one = tab.shown("a", **{**chosen, "other": "b"}).slots["patch-map"].make()
    assert drawn(one).shape == (8, 1)
    experts = tab.made("abc", **{**chosen, "part": "expert", "steer": False, "circuit": False})
    assert ("dense model" in experts["patch-map-headline"]) == (name != "experts")
    assert name != "experts" or drawn(experts["patch-map"]).shape == (8, 2)


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples_keep_their_prompt(tab, name):
    chosen = tab.shown(None, **OPEN, subject=name).selection
    assert chosen["prompt"] == tab.shown(None, view="heads", subject=name).selection["prompt"]
    made = tab.made(None, **OPEN, subject=name)
    for part in ("pair-ideas", "steer-ideas"):
        assert "written by hand for one prompt" in made[part]


@pytest.mark.parametrize("typed", [True, False])
def test_opening_a_part_leaves_the_prompt_as_it_is(tab, typed):
    chosen = tab.shown("abcd abc", **OPEN, typed=typed).selection
    assert chosen["prompt"] == "abcd abc" and chosen["other"] == "" and chosen["towards"] is None
    made = tab.made("abcd abc", **OPEN, typed=typed)
    assert made["pair-ideas"].count("<button") > 1 and not {"steer-texts", "patch-map", "circuit"} & {*made}
