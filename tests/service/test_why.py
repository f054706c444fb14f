"""Why a model said something: its text is read again, passages are found and proven, and all survives a restart."""

import dataclasses
import math
import time

import pytest

from playground.service import why
from playground.service.board import Board
from playground.service.data_folder import DataFolder
from playground.service.limits import LimitError
from playground.service.texts import ELSEWHERE, TextSpec, text_of
from playground.service.why import ProofJob, Question, SearchJob, corpus_of, proofs_of, prove_it, search
from tests.ui.runs import ANNA, BERT, ended, house, small_spec, until

TEXT = "the cat sat on the mat. the dog ran in the sun. a bird sang to the moon. " * 12 + "zed eats mud. " * 2


def trained(board: Board):
    job = ended(board.start(ANNA, small_spec(text=TEXT, steps=40)))
    return board.registry.get(job.id, ANNA), job.id


def question(board: Board, checkpoint, model_id: str, text: str = "the cat sat", first: int = 4) -> Question:
    known, _ = corpus_of(board, checkpoint)
    ids = tuple(checkpoint.tokenizer.encode(text))
    return Question(model_id, checkpoint.history.last_step, ids, first, known)


def test_a_search_and_a_proof_go_from_beginning_to_end_and_are_there_after_a_restart(tmp_path):
    data = DataFolder(tmp_path / "data")
    board = house(tmp_path, data=data)
    checkpoint, model_id = trained(board)
    asked = question(board, checkpoint, model_id)
    found = ended(search(board, ANNA, asked))
    assert found.state == "finished" and found.result.raising and found.result.measured == found.result.of
    chosen = found.result.raising[:1]
    proofs = []
    for _ in range(2):
        proofs.append(prove_it(board, ANNA, asked, chosen))
        until(lambda: proofs[-1].settled)
    noted = "SELECT 1 FROM jobs WHERE kind = ? AND state = 'over'"
    until(lambda: len(data.rows(noted, proofs[0].kind)) == 2)
    assert [each.seed for each in proofs] == [0, 1] and proofs[0].claim == proofs[1].claim
    assert all(math.isfinite(each.result.trial.effect) for each in proofs)
    (predicted,), (actual,) = why.scores_of(proofs)  # one claim, however many seeds
    assert predicted == chosen[0].effect and actual == pytest.approx(sum(p.result.trial.effect for p in proofs) / 2)
    assert proofs_of(board, ANNA, model_id) == proofs and not proofs_of(board, BERT, model_id)
    data.close()
    again = house(tmp_path, data=DataFolder(tmp_path / "data"))
    (back,) = again.of(ANNA, kind=SearchJob)
    assert back.result == found.result and back.question == asked and back.state == "finished"
    assert [each.result for each in proofs_of(again, ANNA, model_id)] == [each.result for each in proofs]


def test_earlier_searches_stay_and_what_cannot_be_traced_or_proven_says_why(tmp_path):
    board = house(tmp_path)
    checkpoint, model_id = trained(board)
    jobs = []
    for text in ("the cat sat", "the dog ran"):
        jobs.append(search(board, ANNA, question(board, checkpoint, model_id, text)))
        until(lambda: jobs[-1].settled)
    assert board.of(ANNA, kind=SearchJob) == jobs
    assert board.find(ANNA, model_id).state == "finished"  # the run and its model stay
    asked = question(board, checkpoint, model_id)
    other = dataclasses.replace(checkpoint, about={"text_sha256": "of another text"})
    with pytest.raises(ValueError, match="not on this page"):
        text_of(dataclasses.replace(other, model=other.model), TextSpec("of another text"), board.limits)
    assert ELSEWHERE.count(".") == 1
    with pytest.raises(ValueError, match="No passage"):
        prove_it(board, ANNA, asked, ())
    late = ended(search(board, ANNA, dataclasses.replace(asked, step=7)))
    assert late.state == "failed" and late.message == why.LEARNED_SINCE
    checkpoint.about.pop("training")
    with pytest.raises(ValueError, match="settings"):
        prove_it(board, ANNA, asked, (why.Passage(((0, 5),), 1.0),))


@pytest.fixture
def searching(tmp_path, monkeypatch):
    """A board, and a search that goes on until it is stopped."""
    board = house(tmp_path)
    checkpoint, model_id = trained(board)

    def slow(*_, should_stop, **__):
        yield why.Progress(0.5)
        while not should_stop():
            time.sleep(0.005)
        raise why.Interrupted("stopped")

    monkeypatch.setattr(why, "rank", slow)
    asked = question(board, checkpoint, model_id, first=5)
    job = search(board, ANNA, asked)
    until(lambda: job.view().done == 0.5)
    return board, job, asked


def test_a_stopped_search_says_how_to_begin_it_again(searching):
    board, job, _ = searching
    board.stop(ANNA, kind=SearchJob)
    ended(job)
    assert job.state == "failed" and "Press “Find the passages”" in job.message


def test_a_search_gives_way_to_whatever_its_visitor_begins_next(searching):
    board, job, asked = searching
    other = search(board, ANNA, dataclasses.replace(asked, first=4))
    assert ended(job).state == "failed" and other.active
    until(lambda: other.view().done == 0.5)
    run = board.start(ANNA, small_spec(text=TEXT, steps=1000))
    assert ended(other).state == "failed"
    waits = search(board, ANNA, asked)
    assert waits.state == "waiting" and waits.view().wait > 1, "for the run"
    until(lambda: run.view().history.last_step)
    board.stop(ANNA)
    assert ended(run).state == "finished"
    until(lambda: waits.view().done == 0.5)


def test_a_proof_gives_way_to_nothing(searching, monkeypatch):
    board, job, asked = searching
    monkeypatch.setattr(ProofJob, "start", lambda job: None)  # it stays in line
    prove_it(board, ANNA, asked, (why.Passage(((0, 5),), 1.0),))
    assert ended(job).state == "failed"
    with pytest.raises(LimitError, match="have a proof"):
        board.start(ANNA, small_spec(text=TEXT, steps=2))
    assert search(board, ANNA, asked).active, "a search joins the queue"
    board.stop(ANNA, kind=ProofJob)
    assert "Press “Prove it”" in board.failed(ANNA, kind=ProofJob).message
