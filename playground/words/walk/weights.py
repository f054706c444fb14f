"""The steps in which tokens attend to each other: scores, mask, softmax, weighted average of the values."""

from __future__ import annotations

import numpy as np

from ..numbers import brief, percent
from .described import Described, Here


def scores(at: Here) -> Described:
    T, D, root, score = at.T, at.D, np.sqrt(at.D), at.facts["score"]
    why = (
        f"The closer the directions of a query and a key, the larger their product. A sum of {D} unrelated products "
        f"is about √{D} = {root:.2f} times as large as one. Larger scores make softmax sharper. "
        f"So scores are divided by √{D}."
    )
    sentence = (
        f"{at.query_token} · {at.key_token} = {brief(score * root, 3)}, ÷ √{D} = {brief(score, 3)}. Of the tokens "
        f"it can see, {at.placed(at.facts['best'])} scores highest ({brief(at.facts['best_score'], 3)})."
    )
    formula = f"{{s:scores}} = {{q:q}} ({T}, {D}) · {{k:k}}ᵀ ({D}, {T}) ÷ √{D} = ({T}, {T}), in each of {at.H} heads"
    code = f"scores = q @ k.transpose(-2, -1) / math.sqrt({D})"
    expressions = {"scores": f"scores[0, {at.head}]"}
    return Described("Scores: every query times every key", why, formula, code, sentence, expressions)


def mask(at: Here) -> Described:
    T, later = at.T, at.facts["later"]
    expressions = {"scores": f"scores[0, {at.head}]"}
    if not at.config.causal:
        formula, code = f"nothing is hidden: all {T * T:,} cells stay", "# no mask: scores stay unchanged"
        why = (
            "In training, the model predicts the next token at every position at once. A mask would keep each position "
            "from seeing the token it has to predict; this model has none."
        )
        later_weight = percent(at.facts["weight_on_later"], 0)
        sentence = (
            f"{at.query_token} sees the future: it will give {later_weight} of its weight to later tokens. In "
            "training, these include the token to predict. So the model's loss says nothing about its writing."
        )
        return Described("The mask: none", why, formula, code, sentence, expressions)
    why = (
        "In training, the model predicts the next token at every position at once. If later tokens were visible, it "
        "could copy the next token instead of predicting it. So the mask hides all later tokens."
    )
    sentence = f"{at.query_token} is the last token, so nothing is hidden from it."
    if later:
        sentence = f"Later tokens hidden from {at.query_token}: {later}."
    formula = f"{{s:scores}}[i, j] = −∞ where j > i: {T * (T - 1) // 2:,} of {T * T:,} cells"
    code = f"scores = scores.masked_fill(~torch.ones({T}, {T}, dtype=torch.bool).tril(), -math.inf)"
    return Described("Mask: hide what comes later", why, formula, code, sentence, expressions)


def softmax(at: Here) -> Described:
    T, row = at.T, at.arrays["pattern"][at.query]
    best = at.facts["best"]
    why = (
        "A weighted average needs weights that are at least 0 and sum to 1. Exp makes any score positive. It turns "
        "differences into factors: a score that is 1 higher gets 2.7 times the weight."
    )
    sentence = f"{at.query_token} attends most to {at.placed(best)} ({row[best]:.4f})."
    sentence += f" {at.key_token} gets {row[at.key]:.4f}." * (at.key != best)
    formula = f"{{s:pattern}}[i, j] = exp({{s:score}}[i, j]) ÷ Σ exp({{s:score}}[i, ·]): ({T}, {T}), each row sums to 1"
    code = "pattern = scores.softmax(dim=-1)  # exp(scores) / exp(scores).sum(dim=-1, keepdim=True)"
    expressions = {"pattern": f"pattern[0, {at.head}]"}
    return Described("Softmax: scores become weights", why, formula, code, sentence, expressions)


def mix(at: Here) -> Described:
    T, D, watched, others = at.T, at.D, at.facts["watched"], at.facts["others"]
    labels = [f"{at.facts['weights'][j]:.2f} × {j} {at.look.tokens[j]}" for j in watched]
    parts = f"parts[{watched}]"
    if others:
        labels.append(f"{others} other{'s' * (others > 1)}")
        parts = f"torch.cat(({parts}, parts.sum(dim=0, keepdim=True) - {parts}.sum(dim=0, keepdim=True)))"
    place = f"[0, {at.head}, {at.query}"
    code = f"parts = pattern{place}, :, None] * v[0, {at.head}]  # ({T}, {D})\nz = pattern @ v"
    why = (
        "The weights say where to look; the values say what is there. Each value is multiplied by its weight. The sum, "
        "a weighted average of the values, is all that this head passes on."
    )
    formula = f"{{s:pattern}} ({T}, {T}) · {{v:v}} ({T}, {D}) = z ({T}, {D})"
    expressions = {"parts": parts, "z": f"z{place}]"}
    first, weights = at.facts["watched"][0], at.facts["weights"]
    sentence = (
        f"Token {first} {at.named(first)} has the most weight ({percent(weights[first], 0)}). "
        f"The average has length {at.facts['length']:.2f}."
    )
    return Described("Average the values by weight", why, formula, code, sentence, expressions, tuple(labels))
