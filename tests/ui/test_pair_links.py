"""Links to a pair: what they hold, what they may not, and what a page opened by one shows."""

from __future__ import annotations

import json

import gradio as gr
import pytest

from playground.data.tokenizers import CharTokenizer
from playground.links import LinkError, letters
from playground.model import Transformer
from playground.service.limits import LOCAL, PUBLIC
from playground.service.models import Registry
from playground.service.runs import HUB_FILE, OWN_TEXT, Source
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.app import build_app
from playground.ui.forms import pair as form
from playground.ui.forms import texts
from playground.ui.tabs.moe.linked import PairCard

from ..model.configs import TINY
from .runs import ANNA, BERT
from .test_links import Asked

OTHER = {"n_experts": 4, "experts_per_token": 1, "steps": 30, "seeds": 2, "equal": "total", "router_noise": 0.5}


def spec_of(source: Source, **changes):
    """A comparison out of the form."""
    usual = form.first_values(OWN_TEXT if source.kind == HUB_FILE else source.kind) | {"equal": "active"}
    return form.comparison_spec(usual | texts.values_of(source) | changes, source, LOCAL)


@pytest.mark.parametrize(
    "source",
    [*(Source(name) for name in ("dialects", "copy", "sentences")), Source(OWN_TEXT, text="a b " * 99),
     Source(HUB_FILE, repo="user/name", filename="x.txt")],
    ids=lambda source: source.kind,
)  # fmt: skip
@pytest.mark.parametrize("changes", [{}, OTHER], ids=["usual", "other"])
def test_whatever_the_form_can_hold_comes_back_into_it(source, changes):
    values = form.values_of(spec_of(source, **changes))
    found = PairCard.from_letters(PairCard(values, "0123abcd", (0.7123, 0.70994), "a machine").to_letters())
    assert found.values == values | {"text": ""}
    assert (found.text_hash, found.losses, found.machine) == ("0123abcd", (0.7123, 0.7099), "a machine")
    found.check(LOCAL)
    said = found.in_words()
    assert "ended at 0.7123 (dense) and 0.7099 (mixture), means over its seeds on a machine" in said
    assert ("Experts 8 → 4" in said and "equal total parameters instead of active parameters" in said) == bool(changes)
    assert ("paste the same one" in said) == (source.kind == OWN_TEXT)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"pair": ["klingon"]}, "a text that this page does not have: klingon"),
        ({"pair": [["dialects"]]}, "a text that this page does not have"),
        ({"pair": ["hub", "a/b"]}, "is not a comparison"),
        ({"set": {"text": "x"}}, "is not a comparison"),
        ({"set": ["steps"]}, "is not a comparison"),
        ({"losses": [1]}, "is not a comparison"),
        ({"losses": ["1", 2]}, "is not a comparison"),
        ({"hash": "\n"}, "is not a comparison"),
        ({"set": {"steps": 3}}, "what the form opens with has changed"),
    ],
)
def test_letters_that_make_no_sense_are_a_sentence(changes, complaint):
    record = letters.unpacked(PairCard(form.values_of(spec_of(Source("dialects")))).to_letters())
    with pytest.raises(LinkError, match=complaint):
        PairCard.from_letters(letters.packed(json.dumps(record | changes).encode()))
    with pytest.raises(LinkError):
        PairCard.from_letters("1" + "A" * 40)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"steps": 10**6}, "Steps must be a whole number from 1 to"),
        ({"n_experts": [8]}, "Experts must be a whole number from 2 to 32"),
        ({"balance": None}, "Balance must be one of"),
        ({"equal": ["active"]}, "What is equal must be one of"),
        ({"d_model": 512, "n_layers": 12, "n_experts": 32, "d_expert": 4096}, "parameters are too many"),
    ],
)
def test_a_link_meets_the_same_limits_as_the_form(changes, complaint):
    card = PairCard(form.values_of(spec_of(Source("dialects"))) | changes)
    with pytest.raises(ValueError, match=complaint):
        PairCard.from_letters(card.to_letters()).check(PUBLIC)


def test_a_page_opened_by_a_link_holds_its_settings_or_shows_its_pair(tmp_path):
    page = build_app(LOCAL, Registry(LOCAL, shipped=tmp_path / "none")).page
    handlers = {handler.__name__: (handler, outputs) for handler, _, outputs in page.on_load_handlers}
    mine = [
        page.registry.add(ANNA, Checkpoint(Transformer(config), CharTokenizer("abc "), History(), name))
        for config, name in ((TINY, "dense"), (TINY.replace(n_experts=4), "mixture"))
    ]
    linked = PairCard(form.values_of(spec_of(Source("copy"), steps=33))).to_letters()
    asked = Asked(tab="moe", dense=mine[0], model=mine[1], pair=linked)

    arrive, (dense, moe, looked_at) = handlers["arrive"]
    assert arrive(ANNA, None, None, asked)[-1] == " ".join(mine)
    assert arrive(BERT, None, None, asked)[-1].strip() == ""
    assert (dense.elem_id, moe.elem_id, looked_at.elem_id) == ("moe-dense", "moe-mixture", "moe-looked-at")

    attach = next(h for h, _, outputs in page.on_load_handlers if any(c.elem_id == "moe-linked" for c in outputs))
    asked.session_hash = "bert"
    filled = {c.elem_id or c.label: value for c, value in attach(asked, BERT, None, None, "step", "loss").items()}
    assert filled["moe-example"]["value"] == "copy" and filled["Steps"] == 33 and filled["tabs"].selected == "moe"
    assert "Steps 80 → 33" in filled["moe-linked"].value and filled["moe-linked"].visible
    asked.session_hash = "anna"
    assert attach(asked, ANNA, None, None, "step", "loss") == gr.skip()
    broken = Asked(pair=linked[:-3])
    broken.session_hash = "bert"
    assert "cannot be opened" in attach(broken, BERT, None, None, "step", "loss")[page.shared("links.note")]
