"""What heads do, on the page: roles with their evidence, the order of heads, and what is left without a prompt."""

import re

import numpy as np
import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.inspection.cost import effect
from playground.inspection.edits import EditCell, SwitchOff, edits_tap
from playground.inspection.heads import head_scores
from playground.model import Transformer
from playground.service.models import SHIPPED_FOLDER
from playground.storage import Checkpoint, load
from playground.training import History
from playground.ui.prompts import chips
from playground.ui.tabs.inspect import edit, heads, roles, thumbnails
from playground.ui.tabs.inspect.frame import MODEL, Place, best
from playground.ui.tabs.inspect.place import ranking
from playground.ui.tabs.inspect.tested import known, roles_of, survey_of
from playground.ui.tabs.inspect.validation import held_out
from playground.words.heads import PLACE_NAMES
from tests.model.configs import VARIANTS
from tests.ui.inspecting import VISITOR, Inspecting

LETTERS = CharTokenizer("abcdefghij")
PROMPT = "bdfh bdfh\ncage c"


@pytest.fixture(scope="module")
def copying():
    """The tab with the shipped model that learned to copy."""
    return Inspecting(load(SHIPPED_FOLDER / "induction"))


def test_a_heads_role_stands_beside_its_interval_its_effect_and_what_the_untrained_reach(copying):
    look = copying.frame.look(VISITOR, copying.model_id, PROMPT)
    tests = roles_of(copying.page, look).tests
    at = next(at for at in tests.ranking() if tests.role(*at) == "followed")
    card = roles.role_card(look, Place(*at, 5, 1), roles_of(copying.page, look))
    mean, margin = tests.effect.at(*at)
    effect_is_of = f"{roles_of(copying.page, look).tests.tokens:,} tokens"
    assert tests.tokens != tests.texts and f"loss without it, nats, on {effect_is_of}" in card
    _, words = roles.head_picture(look, Place(*at), roles_of(copying.page, look), "tested", "effect")
    assert f"Measured: the losses on {effect_is_of}, the roles on {tests.texts} texts" in words
    assert f"{mean:.4f}\u00a0±\u00a0{margin:.4f}" in card and "mostly by its place" in card and "untrained" in card
    assert "rests on the first" not in card and "induction" not in card
    for name, where in PLACE_NAMES.items():  # the untrained reach something everywhere, and less than who follows
        row = card.partition(f"weight on {where}</td>")[2].partition("</tr>")[0]
        assert f">≤ {tests.untrained[name]:.2f}</td>" in row, name
    assert 0 < tests.untrained["induction"] < tests.weights["induction"].low[at]


def test_heads_are_tested_once_for_all_and_worth_the_same_wherever_they_are_shown(copying, monkeypatch):
    look = copying.frame.look(VISITOR, copying.model_id, "abc abc")
    first = roles_of(copying.page, look)
    monkeypatch.setattr("playground.ui.tabs.inspect.tested.head_tests", lambda *_, **__: pytest.fail("tested again"))
    other = copying.frame.look(VISITOR, copying.model_id, "cage c")
    assert roles_of(copying.page, other) is first and known(other) is first
    survey, _ = survey_of(other, held_out(copying.page, other))
    assert (
        np.allclose(first.tests.effect.mean, survey.costs[:, : survey.first.shape[1]].numpy())
        and first.tests.loss == survey.before
    )


def test_the_view_opens_on_the_head_that_the_prediction_owes_most(copying):
    look = copying.frame.look(VISITOR, copying.model_id, PROMPT)
    owed = {}
    for layer in range(2):
        for head in range(2):
            tap = edits_tap([SwitchOff(layer, "head", head)], look.config)
            owed[layer, head] = effect(look.model, torch.tensor([look.ids]), tap).divergence
    assert best(look, Place()).owner == max(owed, key=owed.get) == ranking(look)[0]
    assert sorted(owed, key=owed.get, reverse=True) == ranking(look)


def test_a_link_opens_at_its_place_whichever_of_its_events_is_heard_first_and_another_model_does_not(copying):
    """Opening a link selects a view and changes the prompt: the second event came before anything was drawn."""
    frame = copying.frame
    assert (best(copying.frame.look(VISITOR, copying.model_id, PROMPT), Place()).owner) != (0, 1)
    query = {"tab": "inspect", "model": copying.model_id, "prompt": PROMPT, "layer": "0", "head": "1", "cell": "5,2"}
    for view in ("walk", "heads", "roles", "minds"):
        for name, event, shown in ((f"inspect-{view}", "select", ""), ("inspect-prompt", "change", view)):
            updates = copying.click(name, event, copying.at(PROMPT, shown), **query)
            assert [updates[picker].value for picker in frame.pickers] == [0, 1, 5, 2], (view, name)
    opened = copying.click("inspect-prompt", "change", copying.at(PROMPT, "walk"), **(query | {"model": "another"}))
    assert opened[frame.layer].value, "another model than the link's opens on the head that matters"
    now = copying.at(PROMPT, "walk", (1, 0, 5, 1)) | {frame.seen: f"another {MODEL}\n{PROMPT}\n0"}
    chosen = copying.click("inspect-prompt", "change", now, **(query | {"prompt": "bdfh"}))
    assert (chosen[frame.layer].value, chosen[frame.head].value) != (0, 1)


def test_of_a_model_too_large_to_test_this_prompt_is_what_there_is(copying, monkeypatch):
    monkeypatch.setattr("playground.ui.tabs.inspect.tested.HEAD_TESTS_FLOPS", 1)
    monkeypatch.setattr("playground.ui.tabs.inspect.place.HEADS_AT_ONCE_FLOPS", 1)
    updates = copying.frame.update(copying.at("abc abc a", view="roles"))
    assert "too large to test its heads here" in updates[copying.component("inspect-role")]
    look = copying.frame.look(VISITOR, copying.model_id, "abc abc a")
    assert ranking(look) == head_scores(look).ranking()


def test_a_model_whose_text_nobody_knows_is_tested_on_what_it_writes():
    tab = Inspecting(Checkpoint(Transformer(VARIANTS["learned"].replace(context_length=24)), LETTERS, History()))
    look = tab.frame.look(VISITOR, tab.model_id, "abc")
    found = roles_of(tab.page, look)
    assert "the model wrote itself" in found.words and found.tests.texts > 10
    assert {role for row in found.tests.roles for role in row} == {"unclear"}


def test_an_empty_prompt_leaves_no_tokens_to_choose(copying):
    updates = copying.frame.update(copying.at("", view="roles"))
    assert updates[copying.frame.query]["choices"] == [] == updates[copying.frame.key]["choices"]


def test_another_model_is_another_one(copying):
    values = copying.at("abc", view="heads", inspect_whose="other")
    shipped = [model_id for _, model_id in copying.page.registry.choices(VISITOR) if model_id != copying.model_id]
    assert heads.another(copying.page, VISITOR, copying.model_id, copying.model_id) in shipped
    assert heads.another(copying.page, VISITOR, copying.model_id, shipped[-1]) == shipped[-1]
    assert "could not" not in str(copying.frame.update(values))


def test_beside_a_head_stands_another_one(copying):
    """The view opened on a head beside itself, wherever that was the second of the first layer."""
    look = copying.frame.look(VISITOR, copying.model_id, "abc")
    chosen, beside = (copying.component(f"inspect-{which}-name") for which in ("head", "other"))
    for head in range(look.config.n_heads):
        updates = copying.frame.update(copying.at("abc", view="heads", place=(0, head, 1, 0)))
        assert f"layer 0, head {head}" in updates[chosen] and f"layer 0, head {head}" not in updates[beside]
    last = Place(look.config.n_layers - 1, look.config.n_heads - 1)
    assert heads.next_head(last, look).owner == (0, 0) and heads.next_head(Place(0, 0), look).owner == (0, 1)


def test_what_is_saved_of_the_heads_says_on_what_and_which_number(copying):
    """The random sequence's numbers were saved under the prompt's name."""
    chart, lines = copying.component("inspect-roles-chart"), {}
    for which in roles.SEQUENCES:
        more = {"inspect_sequence": which, "inspect_habit": "effect"}
        lines[which] = copying.frame.update(copying.at("abc abc", "roles", **more))[chart]["about"]["line"]
    assert "prompt “abc abc”" in lines["prompt"] and "measured on" not in lines["prompt"]
    assert "measured on a random sequence, twice" in lines["repeated"] and "measured on many texts" in lines["tested"]
    assert all("measure effect" in line for line in lines.values())
    assert "abc" not in lines["repeated"] + lines["tested"]


def test_the_lens_has_a_word_in_every_cell_of_a_long_prompt_too(copying):
    look = copying.frame.look(VISITOR, copying.model_id, "abea abea\nhbfc hbfc\nccd ccd\nhbdd hb")
    assert look.length > 32
    chart = next(c for c in copying.blocks.blocks.values() if c.elem_id == "minds-lens")
    for query in (0, 20, look.length - 1):
        updates = copying.frame.update(copying.at("abea abea\nhbfc hbfc\nccd ccd\nhbdd hb", "minds", (0, 0, query, 0)))
        cells = updates[chart]["figure"]["data"][0]
        assert cells["texttemplate"] and all(len(row) <= 28 for row in cells["text"])


def test_a_measured_cost_stays_with_its_changes_whatever_the_prompt(copying):
    listed = [SwitchOff(1, "head", 0)]
    look = copying.frame.look(VISITOR, copying.model_id, "abc abc")
    words = edit.cost_words(copying.frame, look, listed)
    other = copying.frame.look(VISITOR, copying.model_id, "dea dea")
    assert edit.costs_before(other, listed) == words and edit.costs_before(other, []) == ""
    before, after, cost = (float(n) for n in re.search(r"from ([\d.]+) to ([\d.]+) .*costs ([\d.]+)", words).groups())
    assert abs((after - before) - cost) <= 0.00006


def test_a_change_in_the_last_row_is_not_said_to_cost_nothing(copying):
    look = copying.frame.look(VISITOR, copying.model_id, "bdfh bd")
    listed = [EditCell(1, 0, look.length - 1, 0, 1.0)]
    found = effect(look.model, torch.tensor([look.ids]), edits_tap(listed, look.config))
    assert found.divergence > 1e-4
    cards = edit.effect_cards(found, listed)
    assert "+0.0000" not in cards and "nothing follows to judge it" in cards


def test_beginnings_show_their_line_breaks_and_keep_them():
    made = chips(["bdfh bdfh\ncage c", "one"])
    assert made["sample_labels"] == ["bdfh bdfh ⏎ cage c", "one"] and made["samples"][0] == ["bdfh bdfh\ncage c"]


def test_beside_a_head_stands_on_how_many_texts_it_was_tested(copying):
    look = copying.frame.look(VISITOR, copying.model_id, "abc abc")
    tests = roles_of(copying.page, look).tests
    assert f"Tested on {tests.texts} texts, it" in heads.headline(look, Place(0, 0, 2, 0))


def test_where_no_head_moves_the_prediction_none_is_said_to_matter(copying, monkeypatch):
    look = copying.frame.look(VISITOR, copying.model_id, "abc abc")
    shape = look.config.n_layers, look.config.n_heads
    monkeypatch.setattr(thumbnails, "moved", lambda _: np.full(shape, 2e-5))
    assert thumbnails.words(look, Place(0, 0, 2, 0)).startswith("No head matters here measurably")
    monkeypatch.setattr(thumbnails, "moved", lambda _: np.full(shape, 2e-2))
    assert thumbnails.words(look, Place(0, 0, 2, 0)).startswith("Most depends here on layer")
