"""Training the chosen model further, and trying several values: from the form to what the panels show."""

import re

import pytest

from playground.data.tokenizers import CharTokenizer
from playground.service.limits import LOCAL
from playground.service.sweeps import SweepJob
from playground.studies.finetune import tuning_corpus
from playground.ui.tabs.train import settings
from playground.ui.tabs.train.sweep import asked_for, runs_of

from .inspecting import made_up
from .panels import PanelCaller
from .runs import small_spec, until
from .test_train_panel import Visit

OTHER = "a dog sat on the cat and the mat sat on a dog. " * 60


def test_the_chosen_model_is_trained_further_on_another_text(served):
    page = Visit(served, "further")
    board = page.board
    first = board.start(page.visitor, small_spec())
    page.until_over()
    further = {"further": True, "model": first.id, "text": OTHER}
    assert "Steps must be a whole number from 1" in page.train(**further, steps=0) and len(board.of(page.visitor)) == 1
    assert "makes new models" in page.train(**further, sweep="Layers = 1, 2")
    page.train(**further, steps=15, prompt="")
    page.until_over()
    tuned = board.of(page.visitor)[-1]
    assert tuned.spec.parent == first.id and tuned.view().history.last_step == 15
    page.look()
    assert "It predicts the new text better" in page.text("headline")
    assert ").<br>Old text: loss" in page.slots["numbers"]
    assert tuned.view().tuning["ladder"]["bigram"] > 0, "by which what it forgot is graded"
    assert page.slots["tuned"].count("<tr>") > 2 and "± is a 95 %" in page.look(details=True)["details"]
    assert "baseline" not in page.slots["details"] and "words occur" not in page.look(samples=True)["samples"]
    assert tuned.spec.prompt == "a dog sat on ", "the first words of the new text, as the field says"
    assert '<p class="sample" dir="auto"><span class="prompt">a dog sat on </span>' in page.slots["tuned"]
    page.model = first.id
    page.look()
    assert page.slots["tuned"] == ""


def test_several_values_make_one_table_and_one_chart(served):
    page = Visit(served, "sweeps")
    panel = PanelCaller(page.caller.address, page.visitor, "sweep", "shipped-stories")
    assert panel.look() == {} and panel.selection["there"] is False
    assert '"sweep":""' in page.train(sweep="Layers = 1, 2", steps=4).replace(" ", ""), "the next press trains once"
    until(lambda: page.board.of(page.visitor, kind=SweepJob)[-1].settled)
    shown = panel.look()
    assert panel.selection["there"] is True and shown["stop"] == "" and shown["bar"] == ""
    assert "Layers" in shown["headline"] and "over 3 seeds" in shown["number"]
    assert "the cat" in shown["about"] and "Layers: 1, 2 · 4 steps each" in shown["about"]
    assert "newest" in shown["newest"]
    panel.model = "shipped-sentences"
    assert panel.look()["newest"] == "", "another model's run stands above it"
    assert shown["table"].count("<tr>") == 3 and len(shown["chart"]["figure"]["data"]) == 2


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("Speed = 1, 2", "There is no setting “Speed”"),
        ("Learning rate", "Learning rate must be between 0.000001 and 1"),
        ("Layers = 1, many", "Layers must be a whole number"),
        ("Pieces of text (tokens) = characters, words", "There is no setting"),
    ],
)
def test_what_cannot_be_tried_is_said(typed, words):
    with pytest.raises(ValueError, match=words):
        asked_for(typed, LOCAL)


def test_a_setting_is_found_by_its_label_or_name_and_read_as_its_field_reads_it():
    assert asked_for("learning rate=0.001, 0.01", LOCAL).values == (0.001, 0.01)
    layers = asked_for("n_layers = 1,2", LOCAL)
    assert layers.values == (1, 2) and isinstance(layers.values[0], int) and layers.seeds == 3


def test_the_form_knows_the_runs_of_a_sweep_and_how_long_each_of_them_is():
    spec = small_spec()
    shape, config = spec.model, spec.training
    for text, runs in (("", 1), ("Learning rate = 0.001", 1), ("Learning rate = 0.001, 0.01", 6), ("Tempo = 1, 2", 1)):
        assert len(runs_of(text, shape, config, LOCAL)) == runs
    found = runs_of("Steps = 100, 5000", shape, config, LOCAL)
    assert sorted(training.steps for _, training in found) == [100] * 3 + [5000] * 3


def test_a_text_is_read_once_for_what_a_model_lacks_of_it(monkeypatch):
    parent, asked = made_up(), []
    monkeypatch.setattr(settings, "tuning_corpus", lambda text, *_: asked.append(text))
    named = {"parent": parent, "source": "text", "own_kind": "paste", "text": OTHER + "é"}
    found = [settings.lacking_html(named, LOCAL) for _ in range(3)]
    assert "“tried” has no token" in found[0][0] and len({*found}) == 1 and len(asked) == 1


def test_capitals_that_a_model_lacks_are_read_as_small_letters():
    tokenizer = CharTokenizer.from_text(OTHER + "A")
    small, large = (tuning_corpus(text * 2, tokenizer, 8).train.tolist() for text in (OTHER, OTHER.upper()))
    assert large == [tokenizer.encode("A")[0] if token == tokenizer.encode("a")[0] else token for token in small]


def test_how_long_a_text_must_be_is_said_before_there_is_one():
    named = {"parent": made_up(), "source": "text", "own_kind": "paste", "text": "", "upload": None}
    said, _ = settings.lacking_html(named, LOCAL)
    needed = int(re.search(r"needs about ([\d,]+) characters", said)[1].replace(",", ""))
    assert "needs about" not in settings.lacking_html(named | {"text": "abcde " * (needed // 6 + 1)}, LOCAL)[0]
    assert "needs about" in settings.lacking_html(named | {"text": "abcde " * (needed // 6 - 20)}, LOCAL)[0]
    strange, possible = settings.lacking_html(named | {"text": "αβγδεζ " * 200}, LOCAL)
    assert not possible and all(letter in strange for letter in "αβγδεζ") and "Remove these characters" in strange


def test_what_a_script_or_a_paste_puts_into_the_field_of_values_counts(served):
    """An `input` event comes from typing alone, `change` from every new value."""
    config = Visit(served, "filled").caller.config
    field = next(each["id"] for each in config["components"] if each["props"].get("elem_id") == "sweep-values")
    assert any([field, "change"] in [list(target) for target in each["targets"]] for each in config["dependencies"])
