"""What the Train tab says of a loss and of a text is what was measured, escaped, and no surer than that."""

import re
from dataclasses import replace
from functools import cache

import torch

from playground.data import Baselines, corpus_from_language
from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.service.verdicts import Verdict
from playground.service.views import RunView
from playground.storage import Checkpoint
from playground.training import Evaluated, Finished, History, Sampled, SkillMeasured, Stepped
from playground.ui.tabs.generate.writing import faults
from playground.ui.tabs.train import speaking, verdict, watch
from playground.words.baselines import each_baseline
from playground.words.pictures import KNOWS_NOTHING

from .generating import Generating


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
    assert speaking.panel(None) == "" and speaking.panel(RunView(id="b", name="b", state="waiting")) == ""


def test_texts_and_names_of_strangers_are_escaped():
    baselines = Baselines(4.0, 3.0, 2.0, texts={"bigram": "<script>alert(1)</script>"})
    assert "<script>" not in speaking.panel(RunView(id="b", name="b", state="recorded", baselines=baselines))
    assert speaking.marked("<b>x</b>", Verdict("", ((3, 4, '"><i>'),))) == (
        '&lt;b&gt;<mark class="fault" title="&quot;&gt;&lt;i&gt;">x</mark>&lt;/b&gt;'
    )
    assert speaking.emphasised("*a* <b>") == "<em>a</em> &lt;b&gt;"
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


def test_the_share_right_stands_with_its_interval_and_its_curve():
    def measured(*shares):
        return view_of(judged=[SkillMeasured(step, 1.0, right=right, of=16, left="") for step, right in shares])

    view = measured((10, 0), (50, 15))
    figure, words = speaking.skill_chart(view)
    assert "steps 10 and 50" in words and figure["data"][0]["error_y"]["array"]
    assert "steps 30 and 200" in speaking.skill_chart(measured((30, 1), (60, 10), (100, 11), (200, 16)))[1]
    assert "too close" in speaking.skill_chart(measured((40, 8), (50, 9)))[1]
    assert speaking.skill_chart(view_of()) == speaking.skill_chart(measured((50, 9))) == (None, "")
    assert verdict.headline(view).startswith("Nearly all")
    assert verdict.headline(replace(view, busy=True)) == "Checking its sums …", "a last, more thorough share follows"


def test_a_loss_that_is_nearly_the_best_and_many_faults_are_one_message():
    """“About half of its stories are consistent” stood beside “Almost perfect.”"""
    floor = ladder().floor
    view = view_of(floor + 0.001, judged=[SkillMeasured(50, 1.0, right=8, of=16, left="")])
    said = " ".join((verdict.headline(view), verdict.why(view), watch.curve(view)[1], verdict.details(view)))
    assert "only 8 of 16 sums" in verdict.headline(view) and "one slip spoils a whole sum" in verdict.why(view)
    assert "perfect" not in said
    longer = replace(view, config=view.config.replace(context_length=2))
    assert "sees only 2 at once" in verdict.why(longer)
    worse = view_of(floor + 0.5, judged=[SkillMeasured(50, 1.0, right=8, of=16, left="")])
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
        view.history.add(Sampled(step, 1.0, prompt="12+34=", text=f"{step}"))
    for changes, says in (({}, True), ({"state": "training"}, False), ({"used": 2}, False), ({"used": 1}, False)):
        shown = watch.sample(replace(view, **changes))
        assert ("At step" in shown) is says and "step 0" not in shown, changes
