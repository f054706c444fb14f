"""Links on the page: what they set, what they may not, and whether a repeated run is known as one."""

import dataclasses
import html

import gradio as gr
import pytest

from playground.data.tokenizers import CharTokenizer
from playground.links import RunCard, text_hash
from playground.links import letters as letters_of
from playground.model import PRESETS, Transformer
from playground.service.board import Board
from playground.service.data_folder import DataFolder
from playground.service.limits import LOCAL
from playground.service.models import Registry
from playground.service.runs import HUB_FILE, OWN_TEXT, Source
from playground.storage import Checkpoint
from playground.training import RECIPES, History
from playground.ui import panel
from playground.ui.app import build_app
from playground.ui.forms import run as form
from playground.ui.forms import texts
from playground.ui.links import carried
from playground.ui.page import Page
from playground.ui.tabs import generate, inspect
from playground.ui.tabs.generate.game import Game
from playground.ui.tabs.generate.why import Why
from playground.ui.tabs.inspect.looks import Looks
from playground.ui.tabs.train.linked import (
    card_of,
    has_link,
    linked_html,
    match,
    run_letters,
    spec_of,
    with_all_settings,
)

from ..model.configs import TINY
from .runs import ANNA, BERT, TEXT, ended, house, small_limits, small_spec, until


class Asked:
    """What gradio hands to a handler, as far as links read it."""

    def __init__(self, **query: str):
        self.query_params = query


def finished(jobs: Board, spec, **options):
    """A run, over."""
    return ended(jobs.start(ANNA, spec, **options))


@pytest.fixture
def jobs(tmp_path) -> Board:
    """Board and an empty registry."""
    return house(tmp_path, jobs=50)


# ---- a run and its link ----------------------------------------------------------------------------------------------


def test_a_run_repeated_from_its_own_link_matches_to_four_decimals(jobs):
    first = finished(jobs, small_spec(steps=30, seed=3))
    letters = run_letters(first.view(), first.spec)
    assert has_link(first.view(), first.spec)
    record = letters_of.unpacked(letters).decode()
    assert not [word for word in ("cat", "mat", "dog") if word in record], "nothing of the text itself"
    card = RunCard.from_letters(letters)
    assert card.text_hash == text_hash(TEXT) and [row[0] for row in card.losses] == [0, 10, 20, 30]
    again = finished(jobs, small_spec(steps=30, seed=3), repeats=card)
    said = match(again.view(), again.spec)
    assert "notice-good" in said and "4 decimals" in said and "4 evaluations" in said
    other = TEXT + "!"
    for changes, complaint in (({"seed": 4}, "changed Seed"), ({"steps": 20}, "changed Steps"),
                               ({"text": other}, "changed the text")):  # fmt: skip
        again = finished(jobs, small_spec(**{"steps": 30, "seed": 3, **changes}), repeats=card)
        said = html.unescape(match(again.view(), again.spec))
        assert complaint in said and "need not" in said


def test_a_run_stopped_early_links_to_all_its_steps_and_promises_only_what_comes_by(jobs):
    job = jobs.start(ANNA, small_spec(steps=5000))
    until(lambda: job.view().history.last_step > 25)
    jobs.stop(ANNA)
    ended(job)
    card = card_of(job.view(), job.spec)
    assert card.training.steps == 5000 and card.losses and all(step % 10 == 0 for step, _, _ in card.losses)


def test_a_run_that_was_trained_longer_promises_no_losses(jobs):
    job = finished(jobs, small_spec(steps=20))
    assert card_of(job.view(), job.spec).losses
    jobs.resume(ANNA, job.id, more_steps=10)
    ended(job)
    view = job.view()
    assert view.lengthened and card_of(view, job.spec).losses == ()
    again = finished(jobs, small_spec(steps=30), repeats=card_of(view, job.spec))
    assert match(again.view(), again.spec) == ""


def test_what_a_link_carries_is_said_before_it_is_copied(jobs):
    page = Page(jobs.limits, jobs.registry, jobs, None, None, None)
    own, other = (
        finished(jobs, spec) for spec in (small_spec(), dataclasses.replace(small_spec(), source=Source("sentences")))
    )
    assert "not your" in carried(page, ANNA, own.id) and "recipe" in carried(page, ANNA, other.id)
    assert "your text" not in carried(page, ANNA, other.id), "everybody has these sentences"
    uploaded = jobs.registry.add(ANNA, Checkpoint(Transformer(TINY), CharTokenizer("abc "), History(), "mine"))
    for model, recipe in ((own.id, True), (other.id, True), (uploaded, False)):
        assert ("run" in page.link_to(ANNA, model)) is recipe is ("recipe" in carried(page, ANNA, model))
    assert "this browser" in carried(page, ANNA, uploaded) and carried(page, ANNA, "shipped-stories") == ""
    looks = Looks(page)
    for model in (own.id, other.id):
        seen = panel.Asked(ANNA, {"model": model, "prompt": "3"})
        for shown in (generate.show(page, Game(page), Why(page), seen), inspect.show(page, looks, seen)):
            assert shown.slots["carried"].make() == carried(page, ANNA, model)


def test_a_copied_link_opens_a_model_that_the_server_keeps_for_everybody(tmp_path):
    """“Link copied” was said of links that opened with no model."""
    limits, data = small_limits(jobs=50), DataFolder(tmp_path / "data")
    app = build_app(limits, Registry(limits, shipped=tmp_path / "none", data=data), data=data)
    page = app.page
    job = finished(page.board, small_spec(steps=5))
    words = page.link_to(ANNA, job.id)
    assert words["model"] == job.id and words["run"], "the owner's own address shares nothing"
    assert "Anybody with this link can use the model. It may quote your text." in carried(page, ANNA, job.id)
    assert "Anybody with this link can use the model.<" in carried(page, BERT, words["share"])
    open_view = next(handler for handler, *_ in page.on_load_handlers if handler.__name__ == "open_view")

    def opened(visitor: str, model: str) -> dict:
        return open_view(visitor, Asked(tab="generate", model=model, run=words["run"]))

    chosen = opened(BERT, words["share"])[page.model]
    assert chosen.value == words["share"] and chosen.choices == [(f"{job.name} · shared", words["share"])]
    assert page.link_to(BERT, words["share"]) == {"model": words["share"]}, "it can be passed on"
    assert opened(ANNA, words["share"])[page.model].value == job.id, "its owner's own"
    assert page.model not in opened(BERT, job.id), "an address that was not copied"
    data.close()


# ---- a card in the form ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [*texts.SOURCES])
@pytest.mark.parametrize("size", ["tiny", "medium"])
def test_whatever_the_form_can_hold_comes_back_into_it(source, size):
    values = form.size_values(size, source) | {"steps": 77, "seed": 5, "causal": False, "n_kv_heads": 1, "prompt": "x"}
    spec = form.run_spec(values | {"source": source}, Source(source), LOCAL)
    card = RunCard(source, spec.model, spec.training, spec.tokenizer, spec.vocab_size)
    found = form.values_of(spec_of(RunCard.from_letters(card.to_letters())))
    assert {f.name: found[f.name] for f in form.FIELDS} == {f.name: values[f.name] for f in form.FIELDS}
    assert found["base"] == size and found["source"] == source and found["prompt"] == "x"
    assert with_all_settings(card, spec, LOCAL) == spec


def test_a_file_of_the_hub_and_an_own_text_are_named():
    hub = RunCard(HUB_FILE, PRESETS["tiny"], RECIPES["tiny"], hub=("<b>a</b>/b", "x.txt", "dataset"))
    held, said = form.values_of(spec_of(hub)), linked_html(hub, "tiny")
    assert held["own_kind"] == "hub" and held["hub_repo"] == "<b>a</b>/b"
    assert "&lt;b&gt;a&lt;/b&gt;/b" in said and "<b>" not in said
    own = RunCard(OWN_TEXT, PRESETS["tiny"], RECIPES["tiny"], text_hash="abcdef0123456789")
    assert "abcdef0123456789" in linked_html(own, "tiny")


# ---- words of the address --------------------------------------------------------------------------------------------


def test_a_link_to_a_model_of_ones_own_opens_it_as_long_as_it_is_here_and_says_so_when_not(tmp_path):
    page = build_app(LOCAL, Registry(LOCAL, shipped=tmp_path / "none")).page
    mine = page.registry.add(ANNA, Checkpoint(Transformer(TINY), CharTokenizer("abc "), History(), "mine"))
    handlers = {handler.__name__: handler for handler, *_ in page.on_load_handlers}
    for query in ({"model": mine}, {"model": mine, "run": "letters"}):
        asked = Asked(tab="generate", prompt="ab", **query)
        out = handlers["open_view"](ANNA, asked)
        assert out[page.model].value == mine and out[page.tabs].selected == "generate"
        assert handlers["open_link"](ANNA, asked) == gr.skip()
    note = page.shared("links.note")
    assert "your browser" in handlers["open_view"]("another visitor of these", Asked(tab="generate", model=mine))[note]
    assert "no tab “&lt;b&gt;”" in handlers["open_view"](ANNA, Asked(tab="<b>"))[note]
    waiting = handlers["open_view"]("another visitor of these", Asked(tab="generate", model=mine, run="letters"))
    assert page.model not in waiting and page.tabs not in waiting
    for model, training, complaint in (
        ({"n_layers": 90}, {}, "layers must"),
        ({"d_model": 1024, "n_layers": 8}, {}, "parameters are too many"),
        ({}, {"batch_size": 64, "accumulation": 100}, "windows per step"),
        ({}, {"steps": 10**6}, "steps"),
        ({"init_std": 3.0}, {}, "initial weights"),
    ):  # the same limits as those of a raw call
        card = RunCard("stories", PRESETS["small"].replace(**model), RECIPES["small"].replace(**training))
        assert complaint in handlers["open_link"](ANNA, Asked(run=card.to_letters()))[note]
