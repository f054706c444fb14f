"""Why? on Generate: copied pieces are marked, passages and proof are shown, and what cannot be traced says why."""

import re

import pytest

from playground.influence.verbatim import Copied
from playground.service.why import ProofJob, SearchJob
from playground.storage import Checkpoint
from playground.ui.panel import Asked
from playground.ui.tabs.generate import why as tab
from playground.ui.tabs.generate.why import _shown
from tests.ui.generating import CHECKPOINT, Generating
from tests.ui.runs import ended, small_spec, until

TEXT = "the cat sat on the mat. the dog ran in the sun. a bird sang to the moon. " * 12


@pytest.fixture(scope="module")
def house():
    """A model that was trained here, and a text as it might write it."""
    panel = Generating()
    job = ended(panel.page.board.start(panel.visitor, small_spec(text=TEXT, steps=30)))
    panel.model_id, panel.checkpoint = job.id, panel.page.registry.get(job.id, panel.visitor)
    return panel


def words(panel: Generating) -> dict:
    encode, step = panel.checkpoint.tokenizer.encode, panel.checkpoint.history.last_step
    tokens = encode("the dog ran in the sun. a bird sang tso")
    return {"prompt": encode("the "), "tokens": tokens, "step": step, "sample": 0, "first": 4, "last": 6}


def test_from_the_question_to_the_proof(house, monkeypatch):
    asked = lambda **more: Asked(house.visitor, {"model": house.model_id, "prompt": "the ", **more})  # noqa: E731
    why = house.why.ask(asked(words=words(house)))["move"]["why"]
    assert why["refused"] == ""
    until(lambda: not house.page.board.active(house.visitor, kind=SearchJob))
    assert house.made("why-title", why=why) == "Why “dog”?"
    answer, copied = house.made("why-answer", why=why), house.made("why-copied", why=why)
    assert "<h3>A hint: this passage may have helped most.</h3>" in answer and "“dog” occurs 11 times" in answer
    assert "95\u00a0% of this answer also occurs" in copied and "The whole shaded piece occurs 10 times" in copied
    assert "<mark>the dog ran in the sun. a bird sang t</mark>" in copied
    with monkeypatch.context() as less_usual:
        less_usual.setattr(Copied, "unusual", True)
        by_heart, marks = (house.made(f"why-{what}", why=why) for what in ("answer", "marks"))
        assert marks == {"copied": [(0, 34)], "asked": [4, 6]}, "whole words"
    assert by_heart.startswith("<h3>Copied: the underlined piece occurs 10 times")
    assert "the <mark>dog</mark> ran" in by_heart and house.made("why-marks", why=why)["copied"] == []
    assert "occurs nowhere" in house.made("why-answer", why=why | {"first": 34, "last": 38}), "out of the piece"
    passages = house.made("why-passages", why=why)
    others = house.made("why-more", why=why).partition("<h3>More passages</h3>")[2]
    raising, lowering = others.split("A hint: these passages may make the words less likely.")
    assert raising.count("checkbox") == raising.count("of the first passage") > 0 and "checked" not in others
    assert lowering.count("Influence: −") == 2
    assert "<h3>" not in passages, "one headline: the answer"
    assert "<mark>a dog ran</mark> to the sea" in _shown("a dog ran to the sea", "the a dog ran"), "no stray “the”"
    assert "the <mark>dog</mark> ran in the sun." in passages and 'data-field="passage-0" checked' in passages
    with monkeypatch.context() as often:
        often.setattr(tab, "FREQUENT", 10)
        often.setattr("playground.words.influence.FREQUENT", 10)
        assert "No single passage" in house.made("why-answer", why=why)
        assert not house.made("why-passages", why=why) + house.made("why-proof", why=why), "nothing is offered above"
        assert house.made("why-more", why=why).count("checked") == 1 and "Prove it" in house.made("why-try", why=why)
    assert not house.made("why-try", why=why)
    assert re.search(r"Prove it.* It takes under a minute( \(a guess\))?\.", house.made("why-proof", why=why))
    house.why.prove(asked(why=why, **{"passage-0": True}))
    until(lambda: all(job.settled for job in house.page.board.of(house.visitor, kind=ProofJob)))
    proven = house.made("why-proven", why=why)
    assert re.search(r"Without passage 1, “dog” gets (&lt;)?[\d.]+\s%\.", proven)
    assert "Without this passage it writes" in proven
    before, without = (each.split("</b>")[0] for each in proven.split("<samp>the the <b>")[1:])
    assert len(before) == len(without) == 40
    (proof,) = house.page.board.of(house.visitor, kind=ProofJob)
    assert len(proof.passages) == 1 and "<table" not in proven
    with monkeypatch.context() as early:
        early.setattr(proof, "state", "training")
        early.setattr(proof, "done", 0.015)
        assert "Training twice: step 1 of 60 · under a minute left" in house.made("why-proof", why=why)
    house.why.prove(asked(why=why, **{"passage-0": True, "passage-1": True}))
    until(lambda: all(job.settled for job in house.page.board.of(house.visitor, kind=ProofJob)))
    assert re.search("<td[^>]*>1</td>.*<td[^>]*>1 and 2</td>", house.made("why-proven", why=why)), "each proof so far"
    with pytest.raises(ValueError, match="No passage"):
        house.why.prove(asked(why=why))


def test_a_refusal_says_with_which_model_the_proof_in_progress_is_shown(house, monkeypatch):
    house.why.ask(house.asked(model=house.model_id, words=words(house)))
    until(lambda: not house.page.board.active(house.visitor, kind=SearchJob))
    other = words(house) | {"first": 10, "last": 12}
    monkeypatch.setattr(SearchJob, "active", True)
    monkeypatch.setattr(SearchJob, "gives_way", False)
    (name,) = [each.name for each in house.page.registry.models(house.visitor) if each.id == house.model_id]
    with pytest.raises(ValueError, match=re.escape(f"in progress on Generate, with “{name}” chosen. Stop it")):
        house.page.board.start(house.visitor, small_spec())
    monkeypatch.setattr(SearchJob, "gives_way", True)
    assert house.why.ask(house.asked(model=house.model_id, words=other))["move"]["why"]["refused"] == ""
    assert house.made("why-answer", why=other) == "", "no verdict before its end"


def test_a_search_that_ended_without_a_result_can_be_asked_for_again(house, monkeypatch):
    asked = house.asked(model=house.model_id, words=words(house) | {"last": 5})
    with monkeypatch.context() as broken:
        broken.setattr("playground.service.why.rank", lambda *_, **__: 1 / 0)
        house.why.ask(asked)
        *_, job = house.page.board.of(house.visitor, kind=SearchJob)
        assert ended(job).state == "failed"
    house.why.ask(asked)
    *_, job = house.page.board.of(house.visitor, kind=SearchJob)
    assert ended(job).state == "finished"

    for first, last in ((0, 0), (0, 37)):  # one token, and everything
        why = words(house) | {"first": first, "last": last}
        assert "copied" in house.made("why-copied", why=why)
        assert "Find the passages" in house.made("why-passages", why=why)


@pytest.mark.parametrize("wrong", [{"first": -1}, {"last": 99}, {"first": "0"}, {"first": 7}, {"tokens": [10**6]}])
def test_what_no_page_sends_is_refused(house, wrong):
    with pytest.raises(ValueError, match=r"Select some words|cannot be read"):
        house.shown(why=words(house) | wrong)


def test_a_model_without_its_text_says_so_once():
    panel = Generating(Checkpoint(CHECKPOINT.model, CHECKPOINT.tokenizer, CHECKPOINT.history, "Uploaded"))
    sent = {"prompt": [1, 2], "tokens": [3, 4, 5], "step": panel.checkpoint.history.last_step, "first": 0, "last": 1}
    why = panel.why.ask(panel.asked(words=sent))["move"]["why"]
    slots = panel.shown(why=why).slots
    with pytest.raises(ValueError, match="training text is not on this page"):
        slots["why-answer"].make()
    assert slots["why-passages"].make() == slots["why-proof"].make() == ""
