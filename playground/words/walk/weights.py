"""The steps in which tokens look at each other: scores, mask, softmax, mix."""

from __future__ import annotations

import numpy as np

from ..numbers import brief, percent, signed
from .described import Described, Here


def scores(at: Here) -> Described:
    """Every query meets every key."""
    T, D, root, score = at.T, at.D, np.sqrt(at.D), at.facts["score"]
    sharper, sharp = f"{at.facts['largest_undivided']:.2f}", f"{at.facts['largest_weight']:.2f}"
    why = (
        f"A query asks, a key answers: the more the two point the same way, the larger the product. A sum of {D} "
        f"unrelated products grows as √{D} = {root:.2f} does, and softmax sharpens with size: not divided, the largest "
        f"weight of {at.asks} would be {sharper} instead of {sharp}."
        if sharper != sharp
        else f"A query asks, a key answers: the more the two point the same way, the larger the product. A sum of {D} "
        f"unrelated products grows as √{D} = {root:.2f} does, so it is divided by that; here it hardly matters, the "
        f"largest weight of {at.asks} is {sharp} either way."
    )
    sentence = (
        f"{at.asks} · {at.answers} = {_brief(score * root)}, ÷ √{D} = {_brief(score)}. Of what it may see, it "
        f"agrees most with {at.placed(at.facts['best'])} ({_brief(at.facts['best_score'])})."
    )
    formula = f"{{s:scores}} = {{q:q}} ({T}, {D}) · {{k:k}}ᵀ ({D}, {T}) ÷ √{D} = ({T}, {T}), in each of {at.H} heads"
    code = f"scores = q @ k.transpose(-2, -1) / math.sqrt({D})"
    expressions = {"scores": f"scores[0, {at.head}]"}
    return Described("Scores: every query meets every key", why, formula, code, sentence, expressions)


def _brief(value: float) -> str:
    """Two decimals, or two digits of what would vanish in them."""
    return signed(value) if abs(value) >= 0.1 or value == 0 else brief(value)


def mask(at: Here) -> Described:
    """The mask hides what comes later."""
    T, later, higher = at.T, at.facts["later"], at.facts["higher"]
    expressions = {"scores": f"scores[0, {at.head}]"}
    if not at.config.causal:
        formula, code = f"nothing is hidden: all {T * T:,} cells stay", "# no mask: scores stay as they are"
        why = (
            "While a model trains, every token is asked for the one after it, all at once. A mask would keep each from "
            "looking at its own answer; this model has none."
        )
        later_weight = percent(at.facts["weight_on_later"], 0)
        sentence = (
            f"It sees the future: {at.asks} is about to give {later_weight} of its weight to tokens that come "
            "after it. In training they held the answer: its loss says nothing about how it writes."
        )
        return Described("The mask: none", why, formula, code, sentence, expressions)
    why = (
        "While a model trains, every token is asked for the one after it, all at once. Were later tokens visible, each "
        "would read its answer instead of guessing it; so whatever comes later is hidden."
    )
    if later:
        if later == 1:
            hidden = f"One later token is hidden from {at.asks}; it would {'' if higher else 'not '}have"
        else:
            hidden = f"{later} later tokens are hidden from {at.asks}; {higher or 'none'} would have"
        sentence = f"{hidden} scored higher than anything that {at.asks} may see."
    else:
        sentence = f"{at.asks} is the last token: nothing is hidden from it. The first sees only itself."
    formula = f"{{s:scores}}[i, j] = −∞ where j > i: {T * (T - 1) // 2:,} of {T * T:,} cells"
    code = f"scores = scores.masked_fill(~torch.ones({T}, {T}, dtype=torch.bool).tril(), -math.inf)"
    return Described("Mask: hide what comes later", why, formula, code, sentence, expressions)


def softmax(at: Here) -> Described:
    """Softmax makes shares of scores."""
    T, row = at.T, at.arrays["pattern"][at.query]
    best, half, visible = (at.facts[name] for name in ("best", "half", "visible"))
    why = (
        "A blend needs shares: none below 0, in all 1. Exp makes a share of any score, and makes differences count as "
        "factors: 1 more in score is 2.7 times the weight."
    )
    sentence = (
        f"{at.asks} looks most at {at.placed(best)} ({row[best]:.2f}); "
        + (
            f"{half} of {visible} tokens hold{'s' * (half == 1)} half of its weight. "
            if visible > 1
            else "it sees no other. "
        )
        + (f"{at.answers} gets {row[at.key]:.4f}. " if at.key != best else "")
        + f"The row sums to {row.sum():.6f}."
    )
    formula = f"{{s:pattern}}[i, j] = exp({{s:score}}[i, j]) ÷ Σ exp({{s:score}}[i, ·]): ({T}, {T}), each row sums to 1"
    code = "pattern = scores.softmax(dim=-1)  # exp(scores) / exp(scores).sum(dim=-1, keepdim=True)"
    expressions = {"pattern": f"pattern[0, {at.head}]"}
    return Described("Softmax: scores become shares", why, formula, code, sentence, expressions)


def mix(at: Here) -> Described:
    """Values are mixed by the weights."""
    T, D, watched, others = at.T, at.D, at.facts["watched"], at.facts["others"]
    labels = [f"{at.facts['weights'][j]:.2f} × {j} {at.look.tokens[j]}" for j in watched]
    parts = f"parts[{watched}]"
    if others:
        labels.append(f"{others} other{'s' * (others > 1)}")
        parts = f"torch.cat(({parts}, parts.sum(dim=0, keepdim=True) - {parts}.sum(dim=0, keepdim=True)))"
    place = f"[0, {at.head}, {at.query}"
    code = f"parts = pattern{place}, :, None] * v[0, {at.head}]  # ({T}, {D})\nz = pattern @ v"
    why = (
        "The weights say where to look; the values are what is found there. Each is scaled by its weight, and the "
        "sum is all that this head takes along."
    )
    formula = f"{{s:pattern}} ({T}, {T}) · {{v:v}} ({T}, {D}) = z ({T}, {D})"
    expressions = {"parts": parts, "z": f"z{place}]"}
    return Described("Blend the values", why, formula, code, _share_of_blend(at), expressions, tuple(labels))


def _share_of_blend(at: Here) -> str:
    """Weight is not share: what counts is how far a part reaches along the blend."""
    weights, shares = at.facts["weights"], at.facts["shares"]
    first = int(weights.argmax())
    weight = percent(weights[first], 0)
    if shares is None:
        return f"{at.placed(first)} has most of the weight ({weight}), but the blend is 0: nothing is taken."
    most, against = int(shares.argmax()), int(shares.argmin())
    sentence = (
        f"{at.placed(first)} has {weight} of the weight and makes {percent(shares[first], 0)} of the blend, measured "
        f"along it (cosine {signed(at.facts['cosine'])}). "
    )
    if most != first:
        sentence += (
            f"The largest share, {percent(shares[most], 0)}, is that of {at.placed(most)} with "
            f"{percent(weights[most], 0)} of weight. "
        )
    if shares[against] < -0.02:
        sentence += f"{at.placed(against)} points against it ({percent(shares[against], 0)}). "
    return f"{sentence}The blend has length {at.facts['length']:.2f}."
