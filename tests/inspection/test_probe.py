"""Probes: every token's source can have said its sentence; a perfect reader knows what Bayes' rule says."""

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.inspection.probe import entropy
from playground.inspection.probe import probe as make_probe

DIALECTS = LANGUAGES["dialects"]


@pytest.mark.parametrize("make", [CharTokenizer, WordTokenizer])
def test_probe_knows_every_tokens_true_source(make):
    tokenizer = make.from_text("".join(DIALECTS.graph.texts[::4]))
    probe = make_probe(DIALECTS, tokenizer.encode, 40, 6, seed=5)
    assert probe.ids.shape == probe.sources.shape == probe.sentences.shape == (6, 40)
    ids, sources, sentences = (np.asarray(x).ravel() for x in (probe.ids, probe.sources, probe.sentences))
    # each whole sentence is one that its speaker can say
    said = {name: set() for name in DIALECTS.sources}
    graph = DIALECTS.graph
    for edge, text in enumerate(graph.texts):
        said[graph.states[graph.source[edge]][0]].add(tuple(tokenizer.encode(text)))
    for number in range(sentences[-1]):  # the last one is cut
        here = sentences == number
        assert len(set(sources[here])) == 1
        assert tuple(ids[here].tolist()) in said[probe.names[sources[here][0]]]
    again = make_probe(DIALECTS, tokenizer.encode, 40, 6, seed=5)
    assert torch.equal(again.ids, probe.ids)
    # openings are the tokens of "the " in sentences that have another one before them in their window
    opening = tokenizer.encode("the ")
    for w in range(6):
        for t in range(40):
            beginnings = [u for u in range(1, t + 1) if probe.sentences[w, u] != probe.sentences[w, u - 1]]
            expected = bool(beginnings) and t - beginnings[-1] < len(opening)
            assert probe.openings[w, t] == expected
            if expected:
                assert probe.ids[w, t] == opening[t - beginnings[-1]]


def test_entropy_of_known_cases_and_a_language_without_sources():
    with pytest.raises(ValueError, match="hidden sources"):
        make_probe(LANGUAGES["stories"], lambda text: [0] * len(text), 16, 2)
    assert entropy([1, 1, 2]) == pytest.approx(1.5)
    assert entropy([7]) == entropy([]) == 0.0
