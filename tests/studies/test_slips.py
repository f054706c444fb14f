"""Textbook slips: every number of every sentence, found again another way, and no place left open in the words."""

import math
import re

import numpy as np
import pytest
import torch

from playground.data.sentences import SENTENCES
from playground.model import PRESETS, Transformer
from playground.storage import load
from playground.studies import slips
from playground.studies.slips import CHECKPOINTS, slip_numbers
from playground.words.slips import SLIPS, slip_sentences


def weights(preset: str, **changes) -> Transformer:
    """The preset's model without memory: only its shapes."""
    with torch.device("meta"):
        return Transformer(PRESETS[preset].replace(**changes))


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_first_and_second_systems_attentions_and_the_fifths_padding():
    got = slip_numbers("counts")
    assert got["more"] == count(weights("s1", qkv_bias=True)) - count(weights("s1")) == 9216
    assert got["per_layer"] == 3 * 512
    mask = np.tril(np.ones((8, 8), dtype=bool))[:, None, None, :]
    assert np.where(mask, np.zeros((1, 2, 8, 8)), -np.inf).shape[0] == slip_numbers("mask")["batch"] == 8
    with pytest.raises(ValueError):
        np.broadcast_shapes(mask.shape, (4, 2, 8, 8))
    got = slip_numbers("placement")
    assert got["post"] == pytest.approx(math.sqrt(768), rel=1e-3)
    assert got["pre"] == pytest.approx(math.sqrt(25 * 768), rel=0.1)  # 25 independent vectors of length √768
    longest = max(len(s.split()) for s in SENTENCES)
    padded = [s.split()[1:] + ["PAD"] * (longest - len(s.split())) for s in SENTENCES]
    cells = [word for row in padded for word in row]
    got = slip_numbers("padding")
    assert (got["padding"], got["cells"]) == (cells.count("PAD"), len(cells))
    assert got["share"] == pytest.approx(cells.count("PAD") / len(cells))


def test_the_third_systems_size_compute_and_bytes():
    model = weights("s3")
    size = slip_numbers("size")
    assert size["all"] * 1e6 == count(model) == 162_692_432
    assert size["blocks"] * 1e6 == count(model.blocks) and round(size["blocks"], 1) == 85.1
    compute, block = slip_numbers("compute"), model.blocks[0]
    assert compute["feedforward"] * 1e6 == 2 * (
        block.feedforward.up.weight.numel() + block.feedforward.down.weight.numel()
    )
    assert compute["attention"] * 1e6 == sum(2 * 512 * 64 for _ in range(12)) * 2  # q·k of 512 keys, then the blend
    assert compute["token"] * 1e6 == block.feedforward.up.weight.numel() and round(compute["token"], 1) == 2.4
    assert compute["sequence"] == pytest.approx(201.3, abs=0.05) and compute["times"] == 6
    kept = slip_numbers("bytes")
    q = torch.empty(32, 512, 3 * 768, device="meta")
    scores, hidden = torch.empty(32, 12, 512, 512, device="meta"), torch.empty(32, 512, 3072, device="meta")
    assert kept["numbers"] * 1e6 == q.numel() and kept["qkv"] * 1e6 == q.nbytes
    assert kept["block"] * 1e6 == q.nbytes + scores.nbytes + hidden.nbytes and round(kept["block"]) == 755
    assert kept["mixed"] * 1e6 == q.numel() + scores.nbytes + hidden.nbytes and round(kept["mixed"]) == 642


def test_dropout_and_words_used_alike_are_compared_with_the_trained_model():
    got = slip_numbers("alike")
    shipped = load(CHECKPOINTS / "sentences")
    after = shipped.model.embedding.weight.detach().double()
    ids = {word: shipped.tokenizer.encode(word)[0] for word in ("mat", "rug", "cat", "dog")}
    for one, other, key in (("mat", "rug", "mat"), ("cat", "dog", "cat")):
        a, b = after[ids[one]], after[ids[other]]
        assert got[key] == pytest.approx(float(a @ b / a.norm() / b.norm()), abs=1e-5)
    assert abs(got["mat0"]) < 0.3 < 0.5 < got["mat"], "one pair moved"
    assert got["cat"] < 0.3, "another did not"
    got = slip_numbers("dropout")
    assert got["p"] == load(CHECKPOINTS / "prose").config.dropout and 0.02 < got["worse"] < 0.3
    assert got["off"] == pytest.approx(1.24, abs=0.02)


@pytest.mark.parametrize("name", SLIPS)
def test_each_says_what_the_text_says_and_what_is_true_without_a_place_left_open(name):
    says, truth = slip_sentences(name)
    assert re.match(r"One textbook \w", says) and says.endswith(".") and truth.endswith(".")
    assert not re.search(r"[{}]|nan|inf\b", truth) and re.search(r"\d", truth)
    assert not re.search(r"(?<![\w-])-\d", truth), "a hyphen is no minus sign"


def test_a_slip_is_left_out_only_while_its_model_is_not_here_and_nobody_changes_numbers(monkeypatch, tmp_path):
    slip_numbers.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(slips, "CHECKPOINTS", tmp_path)
        for name in ("alike", "dropout"):
            with pytest.raises((OSError, ValueError)):
                slip_numbers(name)
            assert slip_sentences(name) is None
        assert slip_sentences("size") is not None
    assert slip_sentences("alike") is not None and slip_sentences("dropout") is not None
    assert slip_numbers("dropout") is slip_numbers("dropout"), "worked out once"
    with pytest.raises(TypeError):
        slip_numbers("counts")["d"] = 0
