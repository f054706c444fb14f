"""The run panel is one state of the server, also further training and sweeps: a visitor's pages show the same."""

import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import playground
from playground.data.tokenizers import CharTokenizer
from playground.service.limits import AWAY_SECONDS, LOCAL
from playground.service.runs import Source
from playground.service.sweeps import SweepJob
from playground.studies.finetune import tuning_corpus
from playground.ui.page import Page
from playground.ui.prompts import read_prompt
from playground.ui.tabs.train import settings
from playground.ui.tabs.train.sweep import asked_for, runs_of
from playground.ui.under_way import tick

from .inspecting import made_up
from .panels import PageCaller, PanelCaller
from .raw import RawCaller, web
from .runs import TEXT, ended, known, small_spec, until
from .test_limits import press_train


class Visit(PageCaller):
    """An open page of a visitor."""

    panel = "train"

    def train(self, **changes) -> str:
        status, answer = press_train(self.caller, self.visitor, **changes)
        assert status == 200, answer
        return answer

    def until_over(self):
        until(lambda: all(job.settled for job in self.board.of(self.visitor)))
        made = self.news()["made"]
        self.model = [*made][-1] if made else self.model
        return self.look()


def test_a_page_opens_with_a_recorded_run_that_is_judged_by_its_text(served):
    page = Visit(served, "opens")
    page.look(details=True, samples=True, baselines=True, inside=True)
    assert "36 of 64" in page.text("headline")
    assert page.text("about").endswith("2,400 steps · recorded")
    assert all(number in page.text("numbers") for number in ("0.130", "0.126", "1.14"))
    assert page.text("notices") == "" and page.selection["has_runs"] is False
    assert page.slots["curve"]["figure"]["data"]
    assert "best possible" in page.slots["rungs"]
    assert page.slots["predictions"]["figure"]
    assert page.bar.look() == {"stop": "", "bar": ""}


def test_a_run_is_followed_by_every_page_until_its_model_is_chosen(served):
    board, _ = served
    one, two = Visit(served, "emil"), Visit(served, "emil")
    before = one.news()
    assert before["pause"] is None and before["made"] == {}
    one.train(steps=3000, name="The one")
    (job,) = board.of(one.visitor)
    for page in (one, two):
        page.look()
        assert page.text("about").startswith("The one") and "live" in page.text("about")
        assert "recorded" not in str(page.slots["curve"]), "the curve of the run before is gone at once"
        assert "stop_run" in page.bar.look()["stop"] and page.news()["pause"] < 5
    until(lambda: job.view().history.last_step > 0)  # else there is nothing to go on with
    assert "of 3,000" in two.bar.look()["bar"]
    two.do("stop_run")
    ended(job)
    one.look()
    assert "The one" in one.text("about") and one.model == "shipped-stories", "it stays until its model is chosen"
    assert one.news()["made"][job.id][1:] == ["The one"] and one.news()["pause"] is None
    for page in (one, two):
        page.until_over()
        page.look(details=True)
        assert page.model == job.id and "Stopped after" in page.text("details")
    one.do("resume_run", of=job.id)
    assert "stop_run" in two.bar.look()["stop"]
    one.do("stop_run")
    two.until_over()
    assert one.do("rename_run", of=job.id, rename="The best") == {"move": {"rename": ""}}
    assert "The best" in two.look(runs=True)["runs"] and "The best" in two.text("about")
    assert one.do("delete_run", of=job.id) == {} and board.of(one.visitor) == []
    two.look()
    assert "recorded" in two.text("about") and not two.selection["has_runs"], "the model that the page opens with"


def test_what_fails_late_is_said_until_it_is_dismissed_or_something_new_is_asked(served):
    board, _ = served
    page = Visit(served, "carla")
    page.train(steps=20)
    first = page.until_over()["about"]
    bad = dataclasses.replace(small_spec(), source=Source("hub", repo="no/such", filename="x.txt"))
    board.start(page.visitor, bad)
    until(lambda: board.of(page.visitor)[-1].settled)
    page.look()
    assert "notice-error" in page.slots["notices"] and page.slots["about"] == first, "what was there stays"
    page.do("dismiss_run")
    assert page.look()["notices"] == ""


def test_runs_of_one_text_are_drawn_beside_each_other_and_four_at_most(served):
    page = Visit(served, "dora")
    ids = []
    for seed in range(3):
        page.train(steps=20, seed=seed)
        page.until_over()
        ids.append(page.model)
    page.look(runs=True)
    assert page.slots["runs"].count('role="checkbox"') == 2
    page.look(beside=[ids[0], ids[1], ids[1], "somebody-elses"])
    names = [trace["name"] for trace in page.slots["curve"]["figure"]["data"]]
    assert sum("Run" in name for name in names) == 2 and page.selection["beside"] == ids[:2]
    assert "cannot be compared" not in page.slots["curve"]["summary"]
    page.train(steps=20, context_length=8)
    page.until_over()
    page.look(beside=ids[:1])
    assert "cannot be compared" in page.slots["curve"]["summary"]
    page.train(text=TEXT.replace("cat", "cow"), steps=20)
    page.until_over()
    page.look(runs=True)
    assert 'role="checkbox"' not in page.slots["runs"], "another text: the losses do not compare"


def test_both_pages_predict_with_the_weights_that_are_used(served):
    page = Visit(served, "flora")
    page_of_text = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")[:1500]
    shape = {"d_model": 64, "context_length": 32}
    page.train(text=page_of_text, steps=120, **shape, eval_every=5)
    page.until_over()
    (job,) = page.board.of(page.visitor)
    before, mark = page.look(inside=True)["predictions"]["summary"], page.news()
    step, last = job.view().kept, page.text("curve")
    assert "Overfitting since" in page.text("headline") and f"Use step {step}" in page.text("buttons")
    assert "You can go back to step 120." in page.slots["buttons"] and page.do("use_best", of=job.id) == {}
    page.look(runs=True)
    assert f"at step {step}," in page.text("curve") and "Use the last step (120)" in page.text("buttons")
    shown, now = page.slots["predictions"], page.news()
    assert f"at step {step}" in str(shown["figure"]) and shown["summary"] != before
    assert not page.slots["gradients"]["facts"], "they are the whole run's"
    assert f"step {step} of 120" in page.text("about") and f"120 (uses step {step})" in page.text("runs")
    listed = Page.models_of(SimpleNamespace(board=page.board, registry=page.board.registry), page.visitor, job.id)
    assert (f"Step {step} of 120 · {job.name}", job.id) in listed, "the list of models says so, too"
    assert now["models"] != mark["models"] and now["made"][job.id][0] != mark["made"][job.id][0]
    assert page.do("use_last", of=job.id) == {}
    page.look()
    assert page.text("curve") == last and f"Use step {step}" in page.text("buttons")


def test_whoever_waits_reads_the_place_and_may_leave(served):
    anna, bert = Visit(served, "anna"), Visit(served, "bert")
    anna.train(steps=100_000)
    bert.train(steps=20)
    bert.look()
    assert bert.text("headline").startswith("First") and "queue" in bert.bar.look()["stop"]
    assert "in the queue" in bert.bar.slots["bar"]
    assert "in the queue" not in str(anna.look())
    bert.do("stop_run")
    assert bert.bar.look()["stop"] == ""
    bert.train(steps=20)
    anna.do("stop_run")
    bert.until_over()
    assert "20 steps" in bert.text("about")
    anna.until_over()


def test_buttons_answer_strangers_in_sentences(served):
    page = Visit(served, "eve")
    other = Visit(served, "owner")
    other.train(steps=20)
    other.until_over()
    for deed in ("resume_run", "use_best", "use_last", "rename_run", "delete_run"):
        answer = page.do(deed, of=other.model, rename="Mine now")
        assert answer.get("problem", "").endswith("."), (deed, answer)
    page.model = other.model
    page.look()
    assert "recorded" in page.text("about"), "another's model is as none"
    odd = {"run": 5, "beside": {"a": 1}, "details": "perhaps", "of": {"a": 1}}
    status, answer = page.post("view/train", selection={**odd, "model": 7})
    assert status == 200 and answer["slots"]
    assert page.post("do/rename_run", selection=odd)[0] == 200


def test_looks_and_stops_at_the_same_moment_disturb_nobody(served):
    """A look and a press of Stop shared what was kept of a visitor, without a lock."""
    page = Visit(served, "hasty")
    page.train(steps=3000)
    (job,) = page.board.of(page.visitor)
    until(lambda: job.view().history.last_step > 0)
    asked = [
        ("view/train", {"selection": {}}),
        ("view/train-bar", {"selection": {}}),
        ("do/stop_run", {"selection": {}}),
    ]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda each: page.post(each[0], **each[1]), asked * 4))
    assert all(status == 200 and "problem" not in answer for status, answer in answers)
    ended(job)
    page.until_over()
    assert page.bar.look() == {"stop": "", "bar": ""} and "Stopped after" in page.look(details=True)["details"]


def test_nothing_that_was_written_runs(served):
    page = Visit(served, "mallory")
    evil = "<img src=x onerror=alert(1)>"
    page.train(steps=20, name=evil, text=(evil + " the cat ") * 40, prompt="<img ")
    page.until_over()
    page.look(details=True, samples=True, baselines=True, runs=True, inside=True)
    assert not [name for name, content in page.slots.items() if isinstance(content, str) and "<img" in content]


def test_whoever_runs_the_server_reads_numbers_and_nothing_else(served):
    board, address = served
    fred = known("fred")
    caller = RawCaller(address, "freds")
    assert press_train(caller, fred, steps=20)[0] == 200 and caller.call("renew-models")[0] == 200
    until(lambda: board.of(fred) and board.of(fred)[0].settled)
    answer = web("GET", address + "status")
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told["jobs"] == board.counts() and told["models"] == board.registry.counts()
    assert told["jobs"]["places"] == 1 and told["models"]["of_visitors"] >= 1 and told["models"]["bytes"] > 0
    assert told["limits"]["models_per_visitor"] == 100 and told["caches"]["bytes"] <= told["caches"]["most_bytes"]
    assert told["page"]["sessions"] > 0 and told["page"]["threads"] > 1
    assert all(isinstance(number, int) for part in told.values() for number in part.values())


def test_a_page_looks_often_at_what_is_new_or_nearly_over_and_seldom_at_what_takes_long_or_waits():
    assert tick(None) < tick(0.0) == tick(2.0) < 0.5 < tick(5.0) < tick(60.0) == tick(600.0) <= 2
    assert 2 < tick(None, waits=True) < AWAY_SECONDS / 10


OTHER = "a dog sat on the cat and the mat sat on a dog. " * 60


def test_the_chosen_model_is_trained_further_on_another_text(served):
    page = Visit(served, "further")
    board = page.board
    first = board.start(page.visitor, small_spec())
    page.until_over()
    further = {"further": True, "model": first.id, "text": OTHER.replace("a dog", "A dog")}
    assert "Steps must be a whole number from 1" in page.train(**further, steps=0) and len(board.of(page.visitor)) == 1
    assert "makes new models" in page.train(**further, sweep="Layers = 1, 2")
    page.train(**further, steps=15, prompt="")
    page.until_over()
    tuned = board.of(page.visitor)[-1]
    assert tuned.spec.parent == first.id and tuned.view().history.last_step == 15
    page.look()
    assert re.match("It predicts (the new text|both texts) better", page.text("headline"))
    assert ").<br>Old text: loss" in page.slots["numbers"] and "On the new text: " in page.slots["numbers"]
    assert tuned.view().tuning["ladder"]["bigram"] > 0, "by which what it forgot is graded"
    assert page.slots["tuned"].count("<tr>") > 2 and "± is a 95 %" in page.look(details=True)["details"]
    assert "baseline" not in page.slots["details"] and "words occur" not in page.look(samples=True)["samples"]
    assert tuned.spec.prompt == "A dog sat on ", "the first words of the new text, as the field says"
    model = board.registry.get(tuned.id, page.visitor)
    assert read_prompt(SimpleNamespace(limits=LOCAL), model, "A dog") == (model.tokenizer.encode("a dog"), [])
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
    needed = int(re.search(r"you need about ([\d,]+)", said)[1].replace(",", ""))
    assert "you need about" not in settings.lacking_html(named | {"text": "abcde " * (needed // 6 + 1)}, LOCAL)[0]
    assert "you need about" in settings.lacking_html(named | {"text": "abcde " * (needed // 6 - 20)}, LOCAL)[0]
    strange, possible = settings.lacking_html(named | {"text": "αβγδεζ " * 200}, LOCAL)
    assert not possible and all(letter in strange for letter in "αβγδεζ") and "Remove these characters" in strange


def test_what_a_script_or_a_paste_puts_into_the_field_of_values_counts(served):
    """An `input` event comes from typing alone, `change` from every new value."""
    config = Visit(served, "filled").caller.config
    field = next(each["id"] for each in config["components"] if each["props"].get("elem_id") == "sweep-values")
    assert any([field, "change"] in [list(target) for target in each["targets"]] for each in config["dependencies"])


def test_an_opening_page_describes_the_run_that_fills_its_form(served):
    """The model's arrival asked about the form before the last run had filled it, and that answer came last."""
    dependencies = Visit(served, "opening").caller.config["dependencies"]
    asks = [each for each in dependencies if re.search(r'touched\(\{"name": "train_form".*"model", ', each["js"] or "")]
    assert [each["trigger_after"] is not None for each in asks] == [False, True]
