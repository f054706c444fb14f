"""The Generate tab's own logic: escaping, what a page may send back, and choices that can be opened again."""

import html
import re

import pytest
import torch

from playground.data.tokenizers import CharTokenizer, train_bpe
from playground.decoding import SamplingConfig, generate
from playground.model import Transformer
from playground.service.limits import LOCAL, PUBLIC
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.tabs.generate.cache_panel import arithmetic
from playground.ui.tabs.generate.tokens import coloured, plain
from playground.ui.tabs.generate.writing import Written, _branch, _label, _markdown, _opened, _rows, _scores
from tests.model.configs import TINY

TOKENIZER = CharTokenizer("<b>&\n\"'xy")
CONFIG = TINY.replace(vocab_size=TOKENIZER.vocab_size)
CHECKPOINT = Checkpoint(Transformer(CONFIG, seed=1), TOKENIZER, History())
PROMPT = TOKENIZER.encode("xy<b>")


def written(n: int = 25, sampling: SamplingConfig | None = None) -> Written:
    sampling = sampling or SamplingConfig(temperature=1.3, top_k=5, seed=2)
    steps = list(generate(CHECKPOINT.model, PROMPT, n, sampling))
    tokens, chances = [s.tokens[0] for s in steps], [s.model_probability[0] for s in steps]
    return Written("some-model", PROMPT, [tokens], [chances], sampling)


def test_generated_text_is_escaped_and_comes_through_whole():
    text = written()
    expected = TOKENIZER.decode(PROMPT + text.samples[0])
    for shown in (
        plain(TOKENIZER, PROMPT, text.samples),
        coloured(TOKENIZER, PROMPT, text.samples, text.probabilities),
    ):
        assert not re.search(r"<b>|<script", shown)
        inner = html.unescape(re.sub(r"<[^>]*>", "", shown)).replace("⏎", "")
        assert inner == expected


def test_every_token_has_its_place_and_surprise():
    text = written()
    shown = coloured(TOKENIZER, PROMPT, text.samples, text.probabilities)
    assert re.findall(r'data-place="0:(\d+)"', shown) == [str(i) for i in range(25)]
    surprise = [float(s) for s in re.findall(r"--surprise:([\d.]+)", shown)]
    assert (surprise[3] > surprise[4]) == (text.probabilities[0][3] < text.probabilities[0][4])


def test_half_a_character_is_not_shown_while_writing():
    bpe = train_bpe("abc", 256)
    ids = bpe.encode("a😀")
    assert "�" not in plain(bpe, ids[:1], [ids[1:3]])
    shown = coloured(bpe, ids[:1], [ids[1:]], [[0.5] * 4])
    assert "😀" in html.unescape(shown) or "�" in shown


def test_an_opened_choice_is_the_one_that_was_made():
    text = written()
    ids = list(PROMPT)
    for index, step in enumerate(generate(CHECKPOINT.model, PROMPT, 25, text.sampling)):
        logits, before = _scores(CHECKPOINT.model, text, 0, index)
        assert before.tolist() == ids
        assert torch.allclose(logits, step.logits[0], atol=1e-4)
        rows = {row.token: row for row in _rows(CHECKPOINT, text, 0, index)}
        assert rows[step.tokens[0]].probability == pytest.approx(step.probability[0], abs=1e-4)
        ids.append(step.tokens[0])


def test_branching_keeps_what_came_before():
    text = written()
    prompt, tokens, chances = _branch(CHECKPOINT, text, 1, 11, "3")
    assert prompt == PROMPT and tokens == [*text.samples[0][:10], 3]
    assert chances[:10] == text.probabilities[0][:10]
    logits, _ = _scores(CHECKPOINT.model, text, 0, 10)
    assert chances[10] == pytest.approx(logits.softmax(0)[3].item())
    for sample, number, token in ((1, 99, "3"), (2, 1, "3"), (1, 11, "99"), (1, 11, None)):
        with pytest.raises(ValueError, match=r"choose|Choose"):
            _branch(CHECKPOINT, text, sample, number, token)


def test_an_opened_choice_names_its_token_harmlessly():
    heading = _opened(CHECKPOINT, written(), 0, 3)[1]
    assert "<b>" not in heading and heading.startswith("**Token 4:")
    assert _markdown("*<x>_`") == "\\*&lt;x&gt;\\_\\`"
    assert _label(TOKENIZER, TOKENIZER.encode("\n")[0]) == "⏎"


def test_a_record_survives_the_page_and_nonsense_does_not():
    text = written()
    again = Written.from_dict(text.to_dict(), LOCAL, CHECKPOINT.model)
    assert again == text
    good = text.to_dict()
    for bad in (
        None,
        [],
        {},
        good | {"prompt": []},
        good | {"prompt": ["x"]},
        good | {"samples": [[999]], "probabilities": [[0.5]]},
        good | {"samples": [[1, 2]], "probabilities": [[0.5]]},
        good | {"samples": [[1] * 10**5], "probabilities": [[0.5] * 10**5]},
        good | {"sampling": {"temperature": -1}},
        good | {"sampling": {"os": "system"}},
    ):
        with pytest.raises(ValueError, match="press Generate"):
            Written.from_dict(bad, PUBLIC, CHECKPOINT.model)


def test_the_arithmetic_is_right():
    text = arithmetic()
    for number in ("54 | 24", "381,750 | 1,515", "99.6 % saved", "1 GiB"):
        assert number in text
