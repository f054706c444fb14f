"""The Train tab: every size is a run that can be made, a change says what it changes, and what is said was measured."""

import dataclasses
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

import playground
from playground.data import Baselines, corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.tokenizers import CharTokenizer
from playground.model import PRESETS, ModelConfig, Transformer
from playground.service.limits import LOCAL, PUBLIC
from playground.service.models import Registry
from playground.service.pace import Pace
from playground.service.runs import HUB_FILE, Source
from playground.service.verdicts import Verdict
from playground.service.views import RunView
from playground.storage import Checkpoint
from playground.storage.transformers_families import family_for
from playground.studies.finetune import tuning_config
from playground.training import Evaluated, Finished, History, Sampled, SkillMeasured, Stepped
from playground.training.recipes import BY_HEART
from playground.training.states import OVERFITTING
from playground.ui import theme
from playground.ui.forms import run as form
from playground.ui.forms import texts
from playground.ui.forms.excerpts import beginning_of, contents_of
from playground.ui.panel import Asked
from playground.ui.tabs.generate.writing import faults
from playground.ui.tabs.train import speaking, verdict, watch
from playground.ui.tabs.train.runs_table import runs_table
from playground.ui.tabs.train.settings import SET_BY_RUN, Settings
from playground.words.baselines import each_baseline
from playground.words.pictures import KNOWS_NOTHING

from .generating import Generating
from .runs import ANNA

LIGHTHOUSE = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")


def filled(size: str = "small", source: str = "stories", **changes) -> dict:
    """The form's values by name."""
    return form.size_values(size, source) | {"source": source, "size": size, "prompt": "x", "base": size} | changes


@pytest.mark.parametrize("limits", [LOCAL, PUBLIC], ids=["local", "public"])
@pytest.mark.parametrize("source", texts.SOURCES)
@pytest.mark.parametrize("size", form.SIZES)
def test_every_size_of_every_text_is_within_the_limits(size, source, limits):
    spec = form.run_spec(filled(size, source), Source(source, text="text"), limits)
    limits.check_training(spec.model, spec.training)
    assert spec.tokenizer in texts.TOKENIZERS_OF[source]
    family_for(spec.model)  # raises where it has no home in Transformers


def test_what_was_pasted_is_what_is_trained_before_the_form_has_followed():
    """Paste and Train within a second: the press still sends the settings of the text before."""
    settings = Settings.__new__(Settings)
    settings.limits = LOCAL
    own = {"own_kind": "paste", "upload": None, "text": LIGHTHOUSE[:8000], "suited": ""}
    late = settings.suited(filled("small", texts.OWN_TEXT, **own))
    suits = form.suited(None, texts.Own(8000))
    assert (late["base"], late["steps"]) == (suits.size, suits.training.steps) == ("tiny", 450)
    assert settings.suited(late) == late
    by_hand = settings.suited(filled("small", texts.OWN_TEXT, **own, steps=77))
    assert by_hand["steps"] == 77 and by_hand["n_layers"] == late["n_layers"]
    # what a run of another size than the best put into the form stays as well
    medium = settings.suited(filled("medium", texts.OWN_TEXT, **own))
    put_back = form.values_of(form.run_spec(medium, Source(texts.OWN_TEXT, text=own["text"]), LOCAL))
    again = settings.suited(put_back | {"upload": None})
    assert again["base"] == "medium" and again["n_layers"] == medium["n_layers"] and again["steps"] == medium["steps"]


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_everything_from_outside_is_escaped():
    evil = "<script>alert(1)</script>"
    view = RunView(id="x", name=evil, state="failed", message=evil, corpus=evil, notices=(evil,))
    view.history.samples.append({"step": 1, "prompt": evil, "text": evil})
    said = (verdict.headline(view), verdict.about(view), verdict.numbers(view), verdict.details(view))
    for shown in (*said, watch.samples(view), watch.sample(view), runs_table([view], "y", alike=["x"])):
        assert "<script>" not in shown


def test_the_runs_table_shows_only_settings_that_differ():
    one = RunView(id="1", name="Run 1", state="finished", settings={"n_layers": 2, "steps": 10, "norm": "rmsnorm"})
    other = RunView(id="2", name="Run 2", state="finished", settings={"n_layers": 4, "steps": 20, "norm": "rmsnorm"})
    table = runs_table([one, other], "2")
    assert '<th scope="col">Layers</th>' in table and "Norm" not in table
    assert ">Steps<" not in table, "the steps done have a column"
    assert table.index("Run 2</bdi> (shown)") < table.index("Run 1</bdi>")
    assert table.index(">validation loss<") < table.index(">Layers<"), "results first"
    assert '<td class="differs">2</td>' in table and '<td class="differs">4</td>' not in table


def test_more_steps_are_not_offered_where_the_model_overfits():
    for rises, label in ((False, "Train longer"), (True, "")):
        view = RunView(id="1", name="Run 1", state="finished", can_resume=True)
        for i in range(20):
            val_loss = 2 + 0.1 * i if rises and i > 9 else 3 - 0.1 * i
            view.history.add(Evaluated(10 * i, 0.0, 3 - 0.12 * i, val_loss))
        view.history.finished = {"reason": "done"}
        assert (view.standing.kind == OVERFITTING) == rises
        assert watch.resume_label(view) == label


@pytest.mark.parametrize("source", [source for source in texts.SOURCES if source != texts.OWN_TEXT])
def test_the_size_that_is_promised_for_our_own_texts_is_the_size_that_comes(source):
    for tokenizer in texts.TOKENIZERS_OF[source]:
        short = {"n_characters": 4000, "n_validation": 1000}  # the vocabulary is the language's, however long the text
        ours = source == texts.SENTENCES
        corpus = corpus_from_sentences() if ours else corpus_from_language(source, unit=tokenizer, **short)
        assert texts.expected_vocabulary(source, tokenizer) == corpus.vocab_size


# ---- what stands beside the choice -----------------------------------------------------------------------------------


def test_a_text_of_ones_own_says_what_it_holds():
    said = contents_of("Hello <b>\nworld\n" + "x" * 3000)
    assert "3,016 characters, 13 different" in said and "memorise" not in said
    assert "<b>" not in contents_of("Hello <b>") and not contents_of(" \n")


WORDS = " ".join(f"word{i % 400}" for i in range(4000))


@pytest.mark.parametrize(("tokenizer", "length", "heart"), [
    ("char", 100, True), ("char", BY_HEART - 6, True), ("char", BY_HEART, False), ("word", 2500, True),
    ("word", 20_000, False),
])  # fmt: skip
def test_by_heart_is_said_of_a_text_that_is_trained_so(tokenizer, length, heart):
    """It was said of a long text in words, too."""
    chosen = own_text(WORDS[:length], tokenizer=tokenizer)
    assert ("memorise" in texts.contents_html(chosen, LOCAL)) == heart
    assert (form.suited(None, texts.own_of(chosen["text"], tokenizer)).training.patience == 0) == heart


def test_a_pasted_text_gives_the_prompt_its_beginning():
    assert beginning_of("  Once there was a queen who", "word") == "Once there was a"
    assert beginning_of("Klarabert\nXaverbert\nPaulbert\n") == "Klarabert", "no blanks that the text lacks"
    assert beginning_of("My brother keeps three hens", "char") == "My brother keeps three ", "not “threet”"
    assert beginning_of("one  two\tthree\n") == "one  two\tthree"
    assert beginning_of("a lighthousekeeper's extraordinary granddaughter") == "a lighthousekeeper's extraordinary"
    assert beginning_of("") == "" and len(beginning_of("x" * 5000)) == 40
    for text, name in (("القطة تجلس.\n", "القطة تجلس"), ("Is it so? Yes.\n", "Is it so? Yes"), ("…\n", "")):
        assert texts.source_of(own_text(text * 200), LOCAL).name == name, "without the mark at its end"
    source = Source(texts.OWN_TEXT, text="Once there was a queen who ruled. " * 100, name="queen.txt")
    for typed, used in (("", "Once there was a "), ("The queen", "The queen")):
        spec = form.run_spec(filled(source=texts.OWN_TEXT, prompt=typed), source, LOCAL)
        assert spec.prompt == used and form.values_of(spec)["prompt"] == typed, "empty for the next text"


# ---- sizes, other texts, names ---------------------------------------------------------------------------------------


def test_the_headline_of_a_run_agrees_with_its_figure():
    """“So far it beats the bigram baseline” stood over a run at 0.022, far below the 5-gram's 0.13."""
    little = Baselines(3.09, 2.63, 0.85, ngram=0.13, order=5, tokens=120, chance={"5-gram": 0.15})
    view = RunView(id="x", name="Run 1", state="training", baselines=little)
    for step, loss in enumerate((3.4, 0.5, 0.06, 0.13, 0.022)):
        view.history.add(Evaluated(step, 1.0, train_loss=loss, val_loss=loss))
    for state in ("training", "finished"):
        assert verdict.headline(dataclasses.replace(view, state=state)).startswith("Below the 5-gram baseline")
    view.history.add(Evaluated(5, 1.0, train_loss=0.02, val_loss=3.991))
    assert "3.991" in verdict.numbers(view) and "beats" not in verdict.headline(view)


def test_a_size_is_chosen_only_where_the_shape_is_its_own():
    assert [form.size_of(filled(size)) for size in form.SIZES] == list(form.SIZES)
    assert form.size_of(filled(d_model=64)) is None and form.size_of(filled(steps=5)) == "small"
    assert form.run_spec(filled() | {"size": None}, Source("stories"), LOCAL).size == "custom"


def another(values: dict, source: str) -> dict:
    return form.for_another_text(values, source, lambda other: form.base_values("small", other))


def test_what_was_set_by_hand_stays_when_another_text_is_chosen():
    mine = filled(steps=77, causal=False, tokenizer="word")
    copy = another(mine, "copy")
    assert (copy["steps"], copy["causal"], copy["n_layers"]) == (77, False, mine["n_layers"])
    few = another(filled(), texts.SENTENCES)
    assert few == {name: form.size_values("small", texts.SENTENCES)[name] for name in form.BY_NAME}
    assert another(filled() | few, "copy") == {n: filled()[n] for n in form.BY_NAME}, "and back"
    bpe = another(filled(source=texts.OWN_TEXT, tokenizer="bpe"), "copy")
    assert bpe["tokenizer"] == "char", "a language is not read in byte pairs"


@pytest.mark.parametrize("tokenizer", ["char", "word", "bpe"])
def test_size_and_steps_of_an_own_text_follow_from_its_length(tokenizer):
    """More steps for more text, up to a bound; all within the limits, and long enough to be judged."""
    steps = []
    for thousands in (1, 2, 8, 32, 128, 1000):
        text = (LIGHTHOUSE * 100)[: 1000 * thousands]
        own = texts.own_of(text, tokenizer)
        suits = form.suited(None, own)
        values = form.base_values(suits.size, texts.OWN_TEXT, own)
        named = values | {"source": texts.OWN_TEXT, "tokenizer": tokenizer, "suited": form.written(own)}
        spec = form.run_spec(named, Source("text", text=text), PUBLIC)
        PUBLIC.check_training(spec.model, spec.training)
        corpus = corpus_from_text(text, tokenizer, vocab_size=spec.vocab_size)
        corpus.check_context(spec.model.context_length)
        if tokenizer in texts.COUNTED:
            counted = (len(corpus.train) + len(corpus.val), corpus.vocab_size)
            assert counted == (own.tokens, own.vocabulary) and corpus.vocab_size == spec.model.vocab_size
        assert spec.training.warmup_steps < spec.training.steps
        by_heart = suits.training.patience == 0
        assert by_heart == (own.tokens < (BY_HEART if own.kinds < 256 else 1_000))
        steps.append(spec.training.steps)
    assert steps[0] >= 50 and max(steps) <= 800, "a page is known by heart within seconds"
    stories = form.run_spec(filled(), Source("stories"), PUBLIC)
    assert stories.training.patience == 0  # a language's text is new all the time


def form_settings() -> Settings:
    """What the form follows; no page is needed for it."""
    return Settings(LOCAL, {}, Pace(), Registry(LOCAL).get)


def follow(values: dict, *causes: str) -> dict:
    """What the form holds once the browser has taken an answer, and what it shows."""
    followed = form_settings().follow(values, causes, Asked(ANNA, {}))
    assert not {"source", "learn"} & followed.fields.keys()
    components = ("source", "tokenizer", "text", "upload", "hub")  # of these something else than the value changes
    return values | {k: v for k, v in followed.shows.items() if k not in components} | followed.fields


def own_text(text: str, **changes) -> dict:
    own = {**dict.fromkeys(texts.OWN, ""), "own_kind": "paste", "text": text, "suited": ""}
    return filled(source=texts.OWN_TEXT) | own | {"learn": texts.OWN_TEXT, "letters": ""} | changes


def test_an_own_text_sets_the_form_and_leaves_what_was_set_by_hand():
    text = "a short text of mine. " * 100
    start = own_text(text)
    chosen = follow(start, "text")
    assert chosen["base"] == "tiny" == chosen["size"] and chosen["steps"] == 160
    assert chosen["suited"] == "2200 char 15 tiny" and not chosen["changes"]
    spec = form.run_spec(chosen, Source("text", text=text), LOCAL)
    assert spec.training.eval_every == form.values_of(spec)["eval_every"] == 8  # a link repeats them
    mine = chosen | {"learning_rate": 1e-3, "text": text * 40}
    after = follow(mine, "text")
    assert after["base"] == "small" and after["learning_rate"] == 1e-3 and after["steps"] > 2 * chosen["steps"]
    assert after["reset"]["value"] == "Reset 1 change" and after["reset"]["visible"]
    deep = form.size_values("medium", texts.OWN_TEXT)["n_layers"]
    turned = mine | {"base": "medium", "n_layers": deep}
    assert follow(turned, "text")["base"] == "medium"  # turned by hand
    assert follow(mine | {"text": ""}, "text")["base"] == "small"
    # read otherwise, it is another length, and nothing else was set by hand
    words = follow(chosen | {"tokenizer": "word"}, "text")
    assert words["suited"] == "600 word 7 tiny" and words["steps"] < chosen["steps"]
    assert "About 1" not in words["outlook"], "its words were counted"
    assert "characters → words" in words["changes"] and words["changes"].count("→") == 1


def test_an_uploaded_text_sets_steps_and_name_as_a_pasted_one_does(tmp_path):
    path = tmp_path / "queen.txt"
    path.write_text("Once there was a queen who ruled. " * 100, encoding="utf-8")
    start = own_text("", own_kind="upload", upload=str(path), prompt="")
    chosen = follow(start, "text")
    source = texts.source_of(chosen, LOCAL)
    assert chosen["steps"] == 220 and source.title == "queen.txt"
    assert form.run_spec(chosen, source, LOCAL).prompt == "Once there was a "
    assert texts.source_of(own_text("Once there was a king " * 20), LOCAL).title == "Once there was a"
    assert "About 810,000 parameters" in follow(own_text("", own_kind="hub"), "text")["outlook"], "a guess is rounded"
    hub = own_text("", own_kind="hub", hub_repo=" someone/texts", hub_file="a.txt", hub_type="dataset")
    assert texts.source_of(hub, LOCAL) == Source(HUB_FILE, repo="someone/texts", filename="a.txt", repo_type="dataset")


def test_what_is_touched_before_an_answer_is_followed_in_that_order():
    """A text and a size chosen within a second: the answer to the first once overwrote that to the second."""
    values = filled() | {"size": "tiny", "suited": "", "learn": texts.EXAMPLE}
    told = form_settings().follow(values, ["size"], Asked(ANNA, {})).fields
    assert told["d_model"] == form.size_values("tiny", "stories")["d_model"] and "seed" not in told
    assert form_settings().follow(values | told, ["fields"], Asked(ANNA, {})).fields == {}, "only what follows is told"
    start = filled() | {"suited": "", "learn": texts.EXAMPLE, "source": "sentences", "size": "tiny"}
    both = follow(start | dict.fromkeys(texts.OWN, "") | {"own_kind": "paste"}, "source", "size")
    assert form.model_config(both).n_parameters == 205_696 and "205,696" in both["outlook"]
    assert (both["base"], both["size"], both["prompt"]) == ("tiny", "tiny", texts.PROMPTS["sentences"])


def test_a_model_that_is_trained_further_sets_how_and_what_was_set_by_hand_stays():
    """Steps 15 became 40, and nobody said how long it takes."""
    text = "a short text of mine. " * 100
    start = follow(own_text(text, prompt="", model="shipped-stories", learning_rate=1e-4), "text")
    further = follow(start | {"further": True}, "further")
    tuned = tuning_config(PRESETS["small"], len(text))
    assert further["steps"] == tuned.steps != start["steps"] and further["optimizer"] == "adamw"
    assert further["learning_rate"] == 1e-4 and further["reset"]["value"] == "Reset 1 change"
    assert f"“Tiny stories” further for {tuned.steps} steps. " in further["outlook"]
    fifteen = follow(further | {"steps": 15}, "fields")
    assert "for 15 steps. " in fifteen["outlook"] and fifteen["steps"] == 15
    assert "for 1 step. Under a minute here" in follow(further | {"steps": 1}, "fields")["outlook"]
    named = form_settings().named(fifteen, ANNA)
    spec = form.run_spec(named, Source("text", text=text), LOCAL)
    assert (spec.parent, spec.training.steps, spec.training.learning_rate) == ("shipped-stories", 15, 1e-4)
    assert follow(further, "reset")["learning_rate"] == tuned.learning_rate
    with pytest.raises(ValueError, match="Steps must be a whole number from 1"):
        form.run_spec(named | {"steps": 0}, Source("text", text=text), LOCAL)
    assert follow(start | {"text": None}, "model")["steps"] == start["steps"], "texts are not sent for nothing"
    again = follow(further | {"further": False}, "further")
    assert {name: again[name] for name in form.BY_NAME} == {name: start[name] for name in form.BY_NAME}
    # what a lesson, a link or a class fills in is a new model; only SET_BY_RUN can be filled
    held = form_settings().held(form.values_of(form.run_spec(filled(), Source("stories"), LOCAL)))
    assert held["further"] is False and held["tuned"] == "" and {*held} <= {*SET_BY_RUN}
    # what the model lacks of a text is said before
    start = own_text("a dog sat. " * 400 + "Ω?é", model="shipped-stories", further=True)
    contents = follow(start, "further")["contents"]
    assert "no token for 2 characters" in contents and "“Ω”" in contents and "“é”" in contents
    capitals = follow(start | {"text": "Kim and Pat saw a dog. " * 200}, "text")["contents"]
    assert "no token" not in capitals, "it reads them as small letters"
    assert "lack 100 % of this text" in follow(start | {"text": "Ὀδυσσεύς" * 300}, "text")["contents"]
    assert "further, you need about" in follow(start | {"text": "a dog sat. " * 20}, "text")["contents"]
    notes = [follow(start | {"text": "", "further": further}, "further")["contents"] for further in (True, False)]
    assert ["2,000 characters" in note for note in notes] == [False, True], "one number"
    assert "lack" not in follow(start | {"further": False}, "further")["contents"]


def learned_from(pace: Pace, spec, step: float, evaluation: float, sample: float, tokens: int = 0) -> float:
    """Let it learn from a run whose parts took so many seconds; how long that took in all."""
    training, history, now = spec.training, History(), 0.0
    in_step = training.batch_size * training.accumulation * spec.model.context_length
    for at in range(training.steps + 1):
        if at:
            now += step
            history.add(Stepped(at, now, 1.0, 0.1, 1.0, tokens_per_second=in_step / step, time_left=1.0))
        if at % training.eval_every == 0 or at == training.steps:
            now += evaluation
            history.add(Evaluated(at, now, train_loss=1.0, val_loss=1.0))
        if at % training.sample_every == 0 or at == training.steps:
            now += sample
            history.add(Sampled(at, now, prompt="", text=""))
    history.add(Finished(training.steps, now, reason="done", steps=training.steps, val_loss=1.0))
    pace.learn(RunView("1", "Run 1", "finished", history=history, config=spec.model), training, tokens)
    return now


@pytest.mark.parametrize("parts", [(0.05, 0.08, 0.15), (0.3, 0.5, 0.04)])
def test_a_forecast_counts_evaluations_and_samples(parts):
    text = "a short text of mine. " * 240
    mine = filled(source=texts.OWN_TEXT, steps=40, sample_every=1, eval_every=4, accumulation=3)
    spec, pace = form.run_spec(mine, Source("text", text=text), LOCAL), Pace()
    took = learned_from(pace, spec, *parts, tokens=len(text))
    assert pace.seconds(spec.model, spec.training, len(text)) == pytest.approx(took, rel=0.01)
    rarer, step = spec.training.replace(sample_every=4), parts[0]
    fewer = pace.seconds(spec.model, rarer, len(text))
    assert took > fewer > 40 * step
    assert pace.seconds(spec.model, rarer.replace(steps=80), len(text)) > 1.8 * fewer
    assert pace.seconds(spec.model, rarer, 2 * len(text)) > fewer, "more to evaluate"


@pytest.mark.parametrize(("seconds", "minutes"), [(130, 3), (170, 3), (200, 5), (1300, 30)])
def test_a_forecast_names_whole_minutes_and_none_too_few(seconds, minutes):
    """“About 9 s” took three and a half minutes."""
    assert re.findall(r"\d+", theme.about(seconds)) == [str(minutes)]
    assert not re.findall(r"\d", theme.about(9)) and "hours" in theme.about(9000)


@cache
def corpus():
    return corpus_from_language("addition", n_characters=20_000, n_validation=3_000)


def ladder():
    return corpus().baselines(24, 20)


def view_of(loss=1.3, judged=(), **more):
    history = History()
    history.add(Evaluated(50, 5.0, train_loss=loss, val_loss=loss))
    for event in judged:
        history.add(event)
    return RunView(
        id="a", name="a run", state="finished", history=history, planned_steps=50, baselines=ladder(),
        language="addition", config=ModelConfig(vocab_size=corpus().vocab_size, context_length=24),
        tokenizer=corpus().tokenizer, **more,
    )  # fmt: skip


def test_every_rung_opens_to_its_sentence_its_text_and_what_that_is_worth():
    panel = speaking.panel(view_of())
    opened = re.findall(r'<details name="rungs" data-rung="([^"]+)">(.*?)</details>', panel, re.DOTALL)
    assert [name for name, _ in opened] == [name for name, _ in ladder().losses()]
    for (_, body), rung in zip(opened, each_baseline(ladder())):
        assert rung.sentence in body and f"{rung.loss:.2f}" in body
        assert rung.text.split("\n")[0][:2] in re.sub("<[^>]+>", "", body)
    assert "right: 0 of" in opened[0][1] and 'class="fault"' in opened[0][1]
    assert re.search(r"right: (\d+) of \1\b", opened[-1][1]) and "fault" not in opened[-1][1]
    assert "a loss?" in panel and f"{corpus().vocab_size}, the whole" in panel
    mine, shipped = (verdict.about(replace(view_of(), state="recorded", paired=paired)) for paired in (True, False))
    assert shipped == f"{mine} · <bdi>imported</bdi>", "a pair's model was just trained here"
    assert speaking.panel(RunView(id="b", name="b", state="waiting")) == ""


def test_texts_and_names_of_strangers_are_escaped():
    baselines = Baselines(4.0, 3.0, 2.0, texts={"bigram": "<script>alert(1)</script>"})
    assert "<script>" not in speaking.panel(RunView(id="b", name="b", state="recorded", baselines=baselines))
    assert speaking.marked("<b>x</b>", Verdict("", ((3, 4, '"><i>'),))) == (
        '&lt;b&gt;<mark class="fault" title="&quot;&gt;&lt;i&gt;">x</mark>&lt;/b&gt;'
    )
    assert speaking.marked("a\nb", Verdict("", ((1, 2, "why"),))) == ('a<mark class="fault" title="why">⏎</mark>\nb')
    found = Verdict("", ((1, 3, "why"),))
    assert faults(found, ["a", "bc", "d"]) == [(1, 1, "why")] and faults(found, ["ab", "c", "d"]) == [(0, 1, "why")]
    assert faults(None, ["ab", "c", "d"]) == []


def test_what_a_red_line_under_a_word_means_is_said_wherever_there_is_one():
    view = view_of()
    for text, wrong in (("46\n", False), ("99\n", True)):
        view.history.samples.append({"step": 50, "prompt": "12+34=", "text": text})
        assert ('class="fault"' in watch.sample(view)) is wrong is ("Red underlines mark" in watch.sample(view))
    made_up = CharTokenizer("abcdefghijklmnopqrstuvwxyz .\n")  # an untrained model's text is no story
    model = Transformer(view.config.replace(vocab_size=made_up.vocab_size, n_layers=1, d_model=16, n_heads=2))
    for about, wrong in (({"language": "stories"}, True), ({}, False)):
        text = Generating(Checkpoint(model, made_up, History(), "one", about)).text(prompt="\n", new_tokens=40)
        assert any(text.end["faults"]) is wrong is ("Red underlines mark" in text.end["said"])


def test_the_share_right_is_the_headline():
    shares = ((10, 0), (50, 15))
    view = view_of(judged=[SkillMeasured(step, 1.0, right=right, of=16) for step, right in shares])
    assert verdict.headline(view).startswith("Nearly all")
    assert verdict.headline(replace(view, busy=True)) == "Checking its sums …", "a last, more thorough share follows"


def test_a_loss_that_is_nearly_the_best_and_many_faults_are_one_message():
    """“About half of its stories are consistent” stood beside “Almost perfect.”"""
    floor = ladder().floor
    view = view_of(floor + 0.001, judged=[SkillMeasured(50, 1.0, right=8, of=16)])
    said = " ".join((verdict.headline(view), verdict.why(view), watch.curve(view)[1], verdict.details(view)))
    assert "only 8 of 16 sums" in verdict.headline(view) and "one slip spoils a whole sum" in verdict.why(view)
    assert "perfect" not in said
    worse = view_of(floor + 0.5, judged=[SkillMeasured(50, 1.0, right=8, of=16)])
    assert "8 of 16" in verdict.headline(worse) and verdict.why(worse) == ""
    copied = replace(view, baselines=replace(ladder(), floor=None, overlap=0.97), language="")
    said = f"{verdict.headline(copied)} {verdict.why(copied)}"
    assert "by heart" in said and "97 % of the validation text" in said and "not seen" not in said
    early = view_of()
    for step in (60, 70):
        early.history.add(Evaluated(step, 6.0, train_loss=1.0, val_loss=1.4))
    early.history.add(Finished(70, 7.0, reason="risen", steps=100, val_loss=1.4))
    assert "no better on held-out text for 2 evaluations" in verdict.why(early)


def test_a_sample_that_is_not_of_the_models_weights_says_its_step_and_chance_has_no_favourite():
    view, chance = view_of(), torch.rand(corpus().vocab_size)
    assert watch.predictions(replace(view_of(9.0), before=chance, now=chance)) == (None, KNOWS_NOTHING)
    for step in (1, 2, 3):
        view.history.add(Stepped(step, 1.0, 1.0, 0.1, 1.0, tokens_per_second=1.0, time_left=1.0))
    for step in (0, 2):
        soon = watch.sample(replace(view, state="training", settings={"sample_every": 30}, planned_steps=20))
        assert "First sample at step 20." in soon, "an untrained model's text is none"
        view.history.add(Sampled(step, 1.0, prompt="12+34=", text=f"{step} a line\nbegun"))
    for changes, says in (({}, True), ({"state": "training"}, False), ({"used": 2}, False), ({"used": 1}, False)):
        shown = watch.sample(replace(view, **changes))
        assert ("At step" in shown) is says and "step 0" not in shown and "begun" not in shown, changes
