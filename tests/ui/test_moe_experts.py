"""The pair panel's folds without a browser: true numbers, clear sentences, nothing changed."""

import html
import re

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer
from playground.figures.parts import part_map
from playground.inspection.edits import edits_tap
from playground.inspection.favourites import favourites
from playground.inspection.routing import routing_of
from playground.model import ModelConfig, Transformer
from playground.service.limits import LOCAL
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.training import History, LoadMeasured
from playground.ui.panel import Asked, _made
from playground.ui.tabs.moe import breaking, pair_panel
from tests.figures.decoded import numbers_of

from .panels import page_of
from .runs import ANNA

DIALECTS = LANGUAGES["dialects"]
LETTERS = CharTokenizer.from_text("".join(dict.fromkeys(DIALECTS.graph.texts)) + "<>&")
MIXTURE = ModelConfig(
    vocab_size=LETTERS.vocab_size, context_length=32, n_layers=2, d_model=16, n_heads=2, n_experts=4, d_expert=8,
    init_std=0.4, positions="rotary",
)  # fmt: skip


def mixture(about: dict | None = None, **changes) -> Checkpoint:
    history = History()
    history.add(LoadMeasured(5, 0.0, [[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]))
    model = Transformer(MIXTURE.replace(**changes), seed=1)
    return Checkpoint(model, LETTERS, history, "mixture", {"prompt": "the wind"} if about is None else about)


CARD = {"headline", "numbers", "more", "interval", "facts", "speed", "remarks", "curve", "table"}


class Tab:
    """The pair panel with some models of Anna's, as a page would ask it."""

    def __init__(self, **models: Checkpoint):
        registry = Registry(LOCAL)
        self.ids = {name: registry.add(ANNA, checkpoint) for name, checkpoint in models.items()}
        self.page = page_of(registry)

    def look(self, mixture: str = "dialects", clicked: dict | None = None, **selection) -> dict:
        """What the panel shows for a selection: slot → content, and the selection itself as `chosen`."""
        ids = {"dense": self.ids.get("dense", ""), "mixture": self.ids.get(mixture, mixture)}
        shown = pair_panel.show_pair(self.page, Asked(ANNA, ids | selection, clicked))
        folded = shown.slots.keys() - CARD
        return {name: _made(shown.slots[name]) for name in folded} | {"chosen": shown.selection}


@pytest.fixture(scope="module")
def tab() -> Tab:
    return Tab(
        dialects=mixture({"prompt": "the wind", "language": "dialects"}),
        plain=mixture({}),
        dense=mixture(n_experts=0),
        all_experts=mixture({"language": "dialects"}, n_experts=2, experts_per_token=2),
    )


def test_the_routing_shown_is_the_models(tab):
    checkpoint, text = mixture(), "the wind <b>&"
    ids = LETTERS.encode(text)
    shown = tab.look(routing=True, loads=True, prompt=text, layer=1, token=6)
    found = routing_of(checkpoint.model, torch.tensor([ids]))
    tokens = shown["routing-text"]
    assert "<b>&</b>" not in tokens and "<script" not in tokens
    spans = re.findall(r'data-token="(\d+)"(.*?)<b>(.*?)</b><i>(\d)</i></button>', tokens)
    assert [html.unescape(s[2]) for s in spans] == list(text.replace(" ", "␣"))
    assert [int(number) for *_, number in spans] == found.experts[1, 0, :, 0].tolist(), "one layer's experts"
    assert [t for t, span in enumerate(spans) if "followed" in span[1]] == [6]
    assert "Token 6 “<bdi>n</bdi>”" in shown["routing-followed"]
    assert shown["routing-headline"].startswith("Repeated tokens keep their main expert ")
    journey = numbers_of(shown["journey"]["figure"]["data"][0]["z"])
    assert journey == pytest.approx(found.dense_weights()[:, 0, 6].numpy(), abs=1e-6)
    over = "Experts in use: 1.0 of 4. Busiest: 100\u00a0%. Almost unused experts are marked ✕."
    assert shown["load-balanced"]["summary"] == shown["loads-usage"] == over


def test_all_folds_read_one_prompt_which_fits_the_model_at_first(tab):
    (prompt,) = {tab.look(**{fold: True})["chosen"]["prompt"] for fold in ("routing", "breaking", "figures")}
    assert prompt.endswith("the wind") and len(LETTERS.encode(prompt)) <= MIXTURE.context_length


def test_a_click_in_the_map_of_costs_chooses_its_expert(tab):
    click = {"slot": "expert-costs", "index": [1, 3]}
    chosen = tab.look(clicked=click, breaking=True, worth=True)["chosen"]
    assert (chosen["layer"], chosen["off"]) == (1, [3])
    with pytest.raises(ValueError, match="the picture"):
        tab.look(clicked={"slot": "expert-costs", "index": [9, 0]}, breaking=True)


def test_bad_choices_are_answered_in_sentences(tab):
    shown = tab.look("plain", routing=True, prompt="")
    assert "is empty" in shown["routing-note"]
    drawn = ("routing-headline", "routing-text", "routing-followed", "journey")
    assert not any(shown[name] for name in drawn), "nothing of another text stays"
    short = tab.look("plain", experts=True, own="the wind.", layer=0)["favourites"]
    assert "only 9 tokens" in short["problem"]
    for how, chosen, said in (
        ("off", [0, 1, 2], "at most 2"),
        ("force", [], "the expert"),
        ("juggle", [0], "to do"),
    ):
        shown = tab.look(breaking=True, prompt="the ", way=how, layer=0, off=chosen)
        assert said in shown["breaking-result"]["problem"] and said in shown["breaking-next"]["problem"]
    shown = tab.look("all_experts", breaking=True, prompt="the ", off=[1])
    assert "are silenced" in shown["breaking-note"] and "The loss " in shown["breaking-result"]
    wild = tab.look(breaking=True, prompt="the ", layer="0; drop", off=[0, 99, "x"])["chosen"]
    assert wild["layer"] in (0, 1) and wild["off"] is None, "what makes no sense is as it is at first"


def test_each_expert_shows_its_share_and_its_favourites_and_a_random_router_is_unclear(tab):
    text = "abababab <cook> & sea. " * 40
    table = tab.look("plain", experts=True, own=text, layer=0)["favourites"]
    assert "<cook>" not in table and "&lt;" in table and "your text" in table
    ids = LETTERS.encode(text)[: 32 * ((len(LETTERS.encode(text)) - 1) // 32)]
    routed = routing_of(mixture().model, torch.tensor(ids).view(-1, 32)).experts[0, ..., 0].flatten().numpy()
    told = [found[:6] for found in favourites(routed, np.array(ids), 4)]
    assert any(told) and table.count('<td class="words">none') == told.count([])
    shown = [f"{100 * f.taken / f.count:.0f}\u00a0%" for some in told for f in some]
    assert re.findall(r"<small>(.*?)</small>", table) == shown
    shares = [float(x) for x in re.findall(r'data-value="([\d.]+)"', table)]
    assert shares == pytest.approx([(routed == expert).mean() for expert in range(4)], abs=1e-6)
    assert "No clear specialisation" in table, "its routers have random weights"


def test_an_edit_shows_before_and_after_and_leaves_the_model_alone(tab):
    checkpoint = mixture()
    ids = LETTERS.encode("the ")
    for how in ("off", "silent", "force"):
        shown = tab.look(breaking=True, prompt="the ", way=how, layer=1, off=[2])
        before = numbers_of(shown["breaking-next"]["figure"]["data"][0]["x"])
        truth = checkpoint.model(torch.tensor([ids])).logits[0, -1].softmax(0).sort(descending=True).values
        assert before[:4] == pytest.approx(truth[:4].tolist(), abs=1e-5)
        assert "The loss " in shown["breaking-result"]
    edit = edits_tap([breaking.edit_for("force", 1, [2])], checkpoint.config)
    seen = routing_of(checkpoint.model, torch.tensor([ids]), edit=edit)
    assert seen.experts[1, 0, 3, 0] == 2 and seen.weights[1, 0, 3].tolist() == [1.0, 0.0]
    assert numbers_of(tab.look(breaking=True, worth=True)["expert-costs"]["figure"]["data"][0]["z"]).shape == (2, 4)
    unchanged, kept = (
        m.state_dict() for m in (checkpoint.model, tab.page.registry.get(tab.ids["dialects"], ANNA).model)
    )
    assert all(torch.equal(kept[name], tensor) for name, tensor in unchanged.items())


def test_a_cost_within_its_interval_is_in_brackets():
    costs, margins = np.array([[0.1, -0.01], [0.5, 0.0]]), np.array([[0.02, 0.05], [0.1, 0.01]])
    cells = part_map(costs, ["0", "1"], "", margins=margins, layers=(1, 3))["data"][0]
    assert cells["text"] == [["0.100", "(−0.010)"], ["0.500", "(0.000)"]]
