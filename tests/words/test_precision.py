"""What precision costs in words: no more than the numbers say."""

from dataclasses import replace

import torch

from playground.inspection.precision import precision_cost
from playground.model import Transformer
from playground.words.precision import above_fp32, precision_summary
from tests.model.configs import TINY


def test_the_summary_says_no_more_than_the_numbers():
    model = Transformer(TINY, seed=1)
    ids = torch.arange(48).view(4, 12) % 11
    cost = precision_cost(model, ids, ids.roll(-1, dims=1), 5)
    plain, bf16, int8 = cost.ways
    dear = replace(int8, more=0.3, more_margin=0.1, tokens_per_second=3 * plain.tokens_per_second)
    words = precision_summary(replace(cost, ways=(plain, replace(bf16, more=0.0, more_margin=0.1), dear)))
    assert "cannot be told from this text" in words and "multiplied in fp32" in words
    assert "3 times as fast here, and predicts worse by 0.30000 ± 0.10000 nats a token" in words
    close = replace(int8, more=0.00003, more_margin=0.000034, parts_at=2)
    assert above_fp32(close) == "+0.000030 ± 0.000034"
    assert "yet its greedy text parts from fp32's at token 3" in precision_summary(replace(cost, ways=(plain, close)))
    one = precision_cost(model, ids[:1], ids[:1].roll(-1, dims=1), 5)
    assert "one window cannot tell" in precision_summary(one)
