"""The Inspect tab's own logic: what it draws for every config, what it says to bad input, and what a page may send."""

import html
import json
import re

import gradio as gr
import numpy as np
import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.figures.wire import numbers_of
from playground.inspection import look
from playground.inspection.edits import SwitchOff, edits_tap
from playground.inspection.example import EXAMPLES
from playground.inspection.receipts import receipt
from playground.inspection.walk import step, step_names
from playground.model import ModelConfig, Transformer, trace
from playground.service.limits import PUBLIC
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.tabs.inspect.beginnings import COPYING, hint
from playground.ui.tabs.inspect.drawn import MOST_TOKENS, cell, window
from playground.ui.tabs.inspect.frame import MODEL, Place, best, watched
from playground.ui.tabs.inspect.looks import KEPT
from playground.ui.tabs.inspect.pictures import HEIGHT, picture
from playground.ui.tabs.inspect.receipt import receipt_html
from playground.ui.tabs.inspect.thumbnails import thumbnails
from playground.ui.tabs.inspect.words import coloured
from playground.words.numbers import percent
from playground.words.walk import describe
from tests.inspection.test_receipts import look_at
from tests.model.configs import TINY, VARIANTS
from tests.ui.inspecting import VISITOR, Inspecting, weight

LETTERS = CharTokenizer("ab<>&cde\n ")


@pytest.fixture(scope="module")
def tab() -> Inspecting:
    config = TINY.replace(vocab_size=LETTERS.vocab_size, context_length=80, init_std=0.5)
    return Inspecting(Checkpoint(Transformer(config), LETTERS, History(), "tried"), PUBLIC)


def chart(updates: dict, component) -> dict:
    return updates[component]["figure"]


@pytest.mark.parametrize("name", VARIANTS)
def test_every_step_of_every_config_has_a_picture_that_plotly_takes(name):
    import plotly.graph_objects as go

    seen = look_at(VARIANTS[name])
    for at in step_names(seen, 1):
        here = step(seen, at, 1, 1, 3, 1)
        figure, _ = picture(here, describe(here).labels, seen, Place(1, 1, 3, 1))
        assert figure["layout"]["height"] == HEIGHT
        go.Figure({"data": figure["data"], "layout": {k: v for k, v in figure["layout"].items() if k != "template"}})


def test_what_is_drawn_is_what_the_step_computed(tab):
    seen, place = tab.frame.read(tab.at("abcabcab", place=(1, 2, 6, 3)))
    updates = tab.frame.update(tab.at("abcabcab", place=(1, 2, 6, 3), inspect_steps="softmax"))
    drawn = numbers_of(chart(updates, tab.component("inspect_step_chart"))["data"][0]["z"])
    pattern = seen.trace["pattern", 1][0, 2].numpy()
    assert np.allclose(np.nan_to_num(drawn), pattern, atol=1e-6) and np.isnan(drawn[0, 1])
    grid = chart(updates, tab.component("inspect_heads_grid"))
    first = re.match(r"L(\d)H(\d)", grid["data"][0]["name"])
    layer, head = int(first[1]), int(first[2])
    assert best(seen, place).owner == (layer, head)
    assert np.allclose(
        numbers_of(grid["data"][0]["z"])[7] / 254, seen.trace["pattern", layer][0, head, 7], atol=1 / 254
    )


def test_the_first_picture_is_light_and_a_cell_does_not_send_the_heads_again(tab):
    prompt = "abcde" * 12
    assert weight(tab.frame.update(tab.at(prompt), where=best)) < 400_000
    grid = tab.component("inspect_heads_grid")
    assert grid in tab.frame.update(tab.at(prompt), lists=False, changed="head")
    assert grid not in tab.frame.update(tab.at(prompt, place=(0, 0, 5, 1)), lists=False, changed="place")
    # but a click that leads to another head does
    moved = tab.frame.update(tab.at(prompt), lists=False, changed="place", where=lambda s, p: p.at(head=3))
    assert grid in moved and moved[tab.frame.head] == 3


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("", "The prompt is empty"),
        (None, "The prompt is empty"),
        (["a"], "The prompt is empty"),
        ("aXY", "never saw “X”, “Y”"),
        ("ab" * 60, "The prompt has 120 tokens; the model sees the last 80"),
        ("a" * 5000, "The prompt has 5,000 characters"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_of_another_prompt_stays(tab, prompt, said):
    updates = tab.frame.update(tab.at(prompt))
    notice = updates[tab.frame.notice]
    assert said in html.unescape(notice) and "Traceback" not in notice
    if "notice-error" in notice:
        places = {tab.frame.query, tab.frame.key}
        left = [value for component, value in updates.items() if component not in {*places, tab.frame.kept}]
        assert all(value in (notice, None, "", "walk") or value == gr.update(visible=False) for value in left)
        assert all(updates[place]["choices"] == [] for place in places)
        for name in ("inspect_step_chart", "inspect_heads_grid", "inspect_step", "inspect_how"):
            assert not updates[tab.component(name)]
        assert not {tab.frame.layer, tab.frame.head, tab.frame.seen, tab.component("inspect_steps")} & set(updates)


def test_one_token_has_every_view(tab):
    for view in ("walk", "heads", "roles"):
        updates = tab.frame.update(tab.at("a", view=view))
        assert updates[tab.frame.notice] == "" and len(updates) > 6
    assert "one token only" in str(tab.frame.update(tab.at("a", view="roles")).values())


@pytest.mark.parametrize(
    "place", [(9, 9, 999, 999), (-1, -5, -9, -9), (None, "x", [], {}), (float("inf"), 1e300, 0, 0)]
)
def test_any_place_a_page_sends_is_held_to_what_there_is(tab, place):
    seen, held = tab.frame.read(tab.at("abcab", place=place))
    assert 0 <= held.layer < 2 and 0 <= held.head < 4 and 0 <= held.query < 5 and 0 <= held.key < 5
    assert tab.frame.update(tab.at("abcab", place=place))[tab.frame.notice] == ""
    assert seen.length == 5


def test_another_visitors_model_is_not_shown(tab):
    updates = tab.frame.update({**tab.at("abc"), tab.page.visitor: "somebody-else-entirely"})
    assert "no longer here" in updates[tab.frame.notice]


def test_a_look_is_kept_and_made_anew_when_its_model_was_replaced(tab):
    first = tab.frame.look(VISITOR, tab.model_id, "abca")
    assert tab.frame.look(VISITOR, tab.model_id, "abca") is first
    old = first.checkpoint
    other = Checkpoint(Transformer(old.config, seed=9), LETTERS, History(), "tried")
    tab.page.registry.add(VISITOR, other, model_id=tab.model_id)
    second = tab.frame.look(VISITOR, tab.model_id, "abca")
    assert second.checkpoint is other and second is not first
    tab.page.registry.add(VISITOR, old, model_id=tab.model_id)


def test_looks_do_not_pile_up(tab):
    for length in range(1, 30):
        tab.frame.look(VISITOR, tab.model_id, "a" * length)
    assert len(tab.frame._looks) <= KEPT


def test_texts_of_tokens_are_escaped_everywhere(tab):
    for view in ("walk", "heads", "roles"):
        for name in ("embed", "softmax", "add", "predict", "mix"):
            updates = tab.frame.update(tab.at("<b>&<a>", view=view, place=(0, 0, 6, 0), inspect_steps=name))
            pages = [u for c, u in updates.items() if isinstance(c, gr.HTML) and isinstance(u, str)]
            assert len(pages) > 1
            assert not any("<b>&<" in page or "<a>" in page for page in pages)
            for figure in (u["figure"] for u in updates.values() if isinstance(u, dict) and "figure" in u):
                assert "“<" not in json.dumps(figure) and not re.search(r'"\d+ <', json.dumps(figure))


def test_roles_are_coloured_and_the_rest_is_escaped():
    assert coloured("{q:Q} · {k:K}ᵀ <i>{x}") == '<span class="q">Q</span> · <span class="k">K</span>ᵀ &lt;i&gt;{x}'


def test_back_and_next_stay_within_the_steps(tab):
    names = step_names(tab.frame.read(tab.at("abc"))[0], 0)
    alters = [alter for _, _, alter, _ in tab.frame._redraws if alter is not None][:2]
    steps = tab.component("inspect_steps")
    seen, place = tab.frame.read(tab.at("abc"))
    for now, back, onward in (
        ("embed", "embed", "norm"),
        ("arrive", "embed", "project"),  # the first layer has none: what comes next stands there
        (["embed"], "embed", "norm"),
        ("scores", "split", "mask"),
        (names[-1], names[-2], names[-1]),
    ):
        values = tab.at("abc", inspect_steps=now)
        assert [alter(seen, place, values, None)[steps] for alter in alters] == [back, onward]
    updates = tab.frame.update(tab.at("abc", inspect_steps="rotate"))  # a step that this model lacks
    assert "Step" in updates[tab.component("inspect_step")] and "rotate" not in dict(updates[steps].choices).values()


def test_a_click_in_a_view_that_has_just_been_opened_is_drawn_there(tab):
    cards, values = tab.component("edit_cards"), tab.at("abc", view="walk", place=(1, 2, 2, 0))
    updates = tab.click("edit_apply", "click", values)  # the page still takes the walk for open
    assert "head 2 of layer 1 switched off" in updates[cards] and updates[tab.frame.view] == "edit"


def test_the_worked_example_stands_in_for_the_model(tab):
    updates = tab.frame.update(tab.at("anything", place=(0, 0, 2, 1), subject="notebook"))
    assert "pencil and paper" in updates[tab.frame.notice]
    paper = next(u for u in updates.values() if isinstance(u, str) and "Receipt:" in u)
    for digits in ("0.33323120", "0.03666085", "0.04999953"):
        assert digits in paper


def test_where_a_worked_example_has_a_prompt_of_its_own_there_is_no_box_to_type_another_one(tab):
    """It stood there and took what was typed, and nothing came of it."""
    given = tab.handler(tab.frame.subject, "change")
    for subject, example in EXAMPLES.items():
        box, ideas, own = given(subject)
        assert box["visible"] == ideas["visible"] == "hidden" and own["visible"] and example.prompt in own["value"]
    box, ideas, own = given(MODEL)
    assert box["visible"] is ideas["visible"] is True and not own["visible"]


def test_the_receipt_shows_the_numbers_it_has(tab):
    seen, _ = tab.frame.read(tab.at("abcab"))
    r = receipt(seen, 1, 2, 4, 1)
    text = receipt_html(r, seen).replace("−", "-")
    for number in (
        r.dot,
        r.score,
        r.exponential,
        r.exponential_sum,
        r.weight,
        *r.q,
        *r.k,
        *r.products,
        *r.v,
        *r.part,
        *r.z,
    ):
        assert f"{number:.8f}" in text or abs(number) < 1e-8
    assert f"Largest difference from the model&#x27;s own forward: {r.largest_difference:.1e}" in text
    assert "are a pair" not in text and "QK-norm" not in text
    turned = look_at(VARIANTS["separate heads"])
    paper = receipt_html(receipt(turned, 1, 2, 4, 1), turned)
    assert "numbers i and i + 2 are a pair" in paper and "q stands at place 4, k at 1" in paper and "QK-norm" in paper
    hidden = receipt_html(receipt(seen, 1, 2, 1, 4), seen)
    assert "comes after the query" in hidden and "hidden" in hidden


def test_a_long_prompt_is_drawn_in_a_window_that_says_so(tab):
    assert window(64, 3) == slice(0, 64) and window(80, 79) == slice(16, 80) and window(200, 100) == slice(64, 128)
    for length in (65, 80, 300):
        for query in range(length):
            part = window(length, query)
            assert part.start <= query < part.stop <= length and part.stop - part.start == MOST_TOKENS
    assert cell(slice(16, 80), 20, 17) == (4, 1) and cell(slice(16, 80), 20, 3) is None
    updates = tab.frame.update(tab.at("abcde" * 16, place=(0, 0, 79, 70), inspect_steps="softmax"))
    value = updates[tab.component("inspect_step_chart")]
    assert "Drawn: tokens 16 to 79 of 80" in value["summary"]
    seen, _ = tab.frame.read(tab.at("abcde" * 16))
    drawn = numbers_of(value["figure"]["data"][0]["z"])
    assert np.allclose(drawn[-1], seen.trace["pattern", 0][0, 0, 79, 16:].numpy(), atol=1e-6)
    assert value["figure"]["layout"]["xaxis"]["ticktext"][0].startswith("16 ")


def test_many_heads_are_drawn_in_part_and_that_is_said():
    config = ModelConfig(vocab_size=11, context_length=8, n_layers=5, d_model=16, n_heads=8, init_std=0.4)
    figure, words = thumbnails(look_at(config, [1, 2, 3, 4, 5]), Place())
    assert len(figure["data"]) == 32 and "32 of 40 heads are drawn" in words


def test_two_models_side_by_side(tab):
    other = Checkpoint(
        Transformer(TINY.replace(n_layers=1, n_heads=2), seed=5), CharTokenizer("abcdefghij"), History(), "o"
    )
    other_id = tab.page.registry.add(VISITOR, other)
    values = tab.at("abcab", view="heads", place=(1, 3, 4, 2), inspect_whose="other")
    picker = next(c for c in tab.defaults if getattr(c, "label", "") == "Model" and c is not tab.page.model)
    updates = tab.frame.update({**values, picker: other_id})
    drawn = numbers_of(chart(updates, tab.component("inspect_other_chart"))["data"][0]["z"])
    theirs = look(other, other.tokenizer.encode("abcab")).trace["pattern", 0][0, 1].numpy()
    assert np.allclose(np.nan_to_num(drawn), theirs, atol=1e-6)
    gone = tab.frame.update({**values, picker: "nothing-of-that-name"})
    assert gone[tab.component("inspect_other_chart")] is None and "no longer here" in str(gone.values())


def test_watched_is_the_largest_weight_of_the_row(tab):
    seen, _ = tab.frame.read(tab.at("abcabcab"))
    place = watched(seen, Place(1, 1, 6, 0))
    row = seen.pattern(1)[1, 6]
    assert row[place.key] == row.max() and isinstance(place.key, int)


def test_handlers_give_gradio_what_it_takes(tab):
    updates = tab.frame.update(tab.at("abc"), where=best)
    assert all(isinstance(updates[p], gr.Dropdown) for p in tab.frame.pickers)
    moved = tab.frame.update(tab.at("abc"), lists=False, changed="place")
    assert all(isinstance(moved[p], int) for p in tab.frame.pickers)


@pytest.mark.parametrize("language", COPYING)
def test_the_tab_opens_on_a_prompt_that_one_head_decides_and_says_what_is_left(language):
    registry = Registry(PUBLIC)
    checkpoint = registry.get({"copy": "shipped-induction"}.get(language, f"shipped-{language}"), None)
    seen = look(checkpoint, checkpoint.tokenizer.encode(COPYING[language]))
    layer, head = best(seen, Place()).owner
    usual = seen.trace["logits"][0, -1].double().softmax(dim=-1)
    without = edits_tap([SwitchOff(layer, "head", head)], seen.config)
    broken = trace(seen.model, torch.tensor([seen.ids]), edit=without)["logits"][0, -1].double().softmax(dim=-1)
    token = int(usual.argmax())
    assert usual[token] > 0.9 and broken[token] < 0.3 and int(broken.argmax()) != token
    said = hint(seen)
    assert f"Without head {head} of layer {layer} " in said and f"{100 * usual[token]:.2f} %" in said
    assert percent(float(broken[token])) in said and percent(float(broken.max())) in said


def test_where_no_head_decides_nothing_is_claimed(tab):
    for prompt in ("a", "ab", "abcabc", "cccc"):
        seen, place = tab.frame.read(tab.at(prompt))
        layer, head = best(seen, place).owner
        usual = seen.trace["logits"][0, -1].softmax(dim=-1)
        without = edits_tap([SwitchOff(layer, "head", head)], seen.config)
        broken = trace(seen.model, torch.tensor([seen.ids]), edit=without)["logits"][0, -1].softmax(dim=-1)
        decided = broken[usual.argmax()] <= 0.5 * usual.max()
        assert ("Break it" in tab.frame.update(tab.at(prompt))[tab.frame.hint]) == bool(decided), prompt
