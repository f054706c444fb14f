"""The excess adds up to the loss less the floor, and names the rule that a model has not learned."""

import numpy as np
import pytest

from playground.data import LANGUAGES, corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.excess_loss import DIVIDED, MOSTLY, NOTHING, SPREAD, UNCLEAR, Partition, excess_loss, is_excess
from playground.data.languages.grammar import SPELLING
from playground.data.languages.made import addition, stories


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("unit", ["char", "word"])
def test_the_parts_add_up_to_what_is_above_the_floor(name, unit):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=3_000, unit=unit)
    baselines, partition = corpus.baselines(24, 40), corpus.partition(24, 40)
    _, targets = corpus.windows("val", 24, 40)
    assert ((partition.part >= 0) == (targets.numpy() >= 0)).all()
    losses = np.random.default_rng(0).random(partition.part.shape) + 1.0
    found = excess_loss(losses, partition)
    counted = partition.part >= 0
    assert found.nats == pytest.approx(losses[counted].mean() - baselines.floor)
    assert sum(part.nats for part in found.parts) == pytest.approx(found.nats)
    assert sum(part.share_of_tokens for part in found.parts) == pytest.approx(1.0)
    perfect = excess_loss(partition.unavoidable, partition)
    assert perfect.nats == pytest.approx(0.0) and perfect.kind() == (NOTHING, ())


@pytest.mark.parametrize(
    ("name", "kind"),
    [("stories", stories.OWNER), ("stories", stories.PRONOUN), ("stories", SPELLING), ("addition", addition.DIGITS[1])],
)
def test_the_rule_that_a_model_lacks_is_the_one_that_is_named(name, kind):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=6_000)
    partition = corpus.partition(64)
    noise = np.random.default_rng(1).normal(0.0, 0.02, partition.part.shape)
    lacks = partition.part == partition.names.index(kind)
    found = excess_loss(partition.unavoidable + noise + 1.5 * lacks, partition)
    said, parts = found.kind()
    assert said == MOSTLY and [part.name for part in parts] == [kind]


def made_up(parts, n=60, tokens=30, spread=0.0):
    """Windows whose targets belong to parts in turn, each losing so much, give or take."""
    names = tuple(parts)
    which = np.tile(np.arange(tokens) % len(names), (n, 1))
    partition = Partition(names, which, np.zeros((n, tokens)))
    rng = np.random.default_rng(0)
    return excess_loss(np.array(list(parts.values()))[which] + rng.normal(0, spread, which.shape), partition)


def test_what_is_said_is_no_surer_than_the_numbers_and_its_record_is_known():
    assert shown({"a": 0.8, "b": 0.1, "c": 0.1}) == (MOSTLY, "a")
    assert shown({"a": 0.9, "b": 0.89, "c": 0.1}, spread=0.5)[1] in ("ab", "ba")  # which is larger cannot be told
    assert shown({letter: 1.0 for letter in "abcdefghij"})[0] == SPREAD
    assert shown({"a": 0.02, "b": 0.0}, n=4, spread=2.0) == (UNCLEAR, "")
    assert shown({"a": 0.002, "b": 0.0}, n=60, spread=0.2) == (NOTHING, "")
    assert excess_loss(np.zeros((1, 3)), Partition((), np.full((1, 3), -1), np.zeros((1, 3)))).kind() == (UNCLEAR, ())
    whole = Partition(("a", "b"), np.arange(12).reshape(2, 6) % 2, np.zeros((2, 6)))
    assert excess_loss(np.zeros((2, 6)), whole).kind() == (NOTHING, ())  # of a text of one letter
    # “what is left is mostly *copied letters* (63 %) and *free choices* (37 %)” named all there is.
    which = np.tile(np.arange(20) % 2, (2, 1))
    two = Partition(("copied", "free"), which, np.zeros((2, 20)))
    found = excess_loss(np.array([[0.9, 0.1] * 10, [0.36, 0.64] * 10]), two).to_dict()
    assert found["kind"] == DIVIDED and found["parts"] == [["copied", 0.63, 0.5], ["free", 0.37, 0.5]]
    assert shown({"a": 0.6, "b": 0.0}) == (MOSTLY, "a")
    record = made_up({"a": 0.8, "b": 0.1}, n=3, tokens=10).to_dict()
    assert is_excess(record) and record["tokens"] == 30
    for changed in (
        {"kind": "no"}, {"kind": NOTHING}, {"parts": []}, {"parts": [["a", 2.0, 0.1]]}, {"parts": [["a" * 999, 1, 1]]},
        {"tokens": -1}, {"tokens": True}, {"unit": 3}, {"more": 1}, {"parts": None},
    ):  # fmt: skip
        assert not is_excess(record | changed)
    assert not is_excess([record])
    assert corpus_from_text("the cat sat on the mat. " * 40).partition(16) is None
    assert corpus_from_sentences().partition(16) is None
    corpus = corpus_from_language("copy", n_characters=2000, n_validation=1000)
    assert corpus.partition(16) is corpus.partition(16)  # once for all who ask


def shown(parts, **about):
    kind, named = made_up(parts, **about).kind()
    return kind, "".join(part.name for part in named)
