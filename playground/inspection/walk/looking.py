"""The steps in which tokens look at each other: scores, mask, softmax, blend."""

from __future__ import annotations

import numpy as np

from ...figures.wire import brief, percent, signed
from .step import TOP, At, Step, cosine, double, norm


def scores(at: At) -> Step:
    """arrays: scores (T, T) of this head, the hidden ones too."""
    T, D = at.T, at.D
    scores = double(at.look.scores(at.layer)[at.head])
    root, row = np.sqrt(D), scores[at.query]
    seen = row[: at.query + 1] if at.config.causal else row
    best = int(seen.argmax())
    sharper, sharp = f"{_softmax(seen * root).max():.2f}", f"{_softmax(seen).max():.2f}"
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
        f"{at.asks} · {at.answers} = {_brief(row[at.key] * root)}, ÷ √{D} = {_brief(row[at.key])}. Of what it may see, "
        f"it agrees most with {at.placed(best)} ({_brief(row[best])})."
    )
    formula = f"{{s:scores}} = {{q:q}} ({T}, {D}) · {{k:k}}ᵀ ({D}, {T}) ÷ √{D} = ({T}, {T}), in each of {at.H} heads"
    code = f"scores = q @ k.transpose(-2, -1) / math.sqrt({D})"
    drawn = {"scores": f"scores[0, {at.head}]"}
    title = "Scores: every query meets every key"
    return Step("scores", title, why, formula, code, sentence, {"scores": scores}, drawn)


def _brief(value: float) -> str:
    """Two decimals, or two digits of what would vanish in them."""
    return signed(value) if abs(value) >= 0.1 or value == 0 else brief(value)


def _softmax(row: np.ndarray) -> np.ndarray:
    shares = np.exp(row - row.max())
    return shares / shares.sum()


def mask(at: At) -> Step:
    """arrays: scores (T, T) with −inf where a query may not look."""
    T, query = at.T, at.query
    scores = double(at.look.scores(at.layer)[at.head])
    drawn = {"scores": f"scores[0, {at.head}]"}
    if not at.config.causal:
        formula, code = f"nothing is hidden: all {T * T:,} cells stay", "# no mask: scores stay as they are"
        why = (
            "While a model trains, every token is asked for the one after it, all at once. A mask would keep each from "
            "looking at its own answer; this model has none."
        )
        later = _softmax(scores[query])[query + 1 :].sum()
        sentence = (
            f"It sees the future: {at.asks} is about to give {percent(later, 0)} of its weight to tokens that come "
            "after it. In training they held the answer: its loss says nothing about how it writes."
        )
        return Step("mask", "The mask: none", why, formula, code, sentence, {"scores": scores}, drawn)
    hidden = np.triu(np.ones((T, T), dtype=bool), 1)
    why = (
        "While a model trains, every token is asked for the one after it, all at once. Were later tokens visible, each "
        "would read its answer instead of guessing it; so whatever comes later is hidden."
    )
    later = T - 1 - query
    if later:
        lost = int((scores[query] > scores[query, : query + 1].max())[query + 1 :].sum())
        if later == 1:
            told = f"One later token is hidden from {at.asks}; it would {'' if lost else 'not '}have"
        else:
            told = f"{later} later tokens are hidden from {at.asks}; {lost or 'none'} would have"
        sentence = f"{told} scored higher than anything that {at.asks} may see."
    else:
        sentence = f"{at.asks} is the last token: nothing is hidden from it. The first sees only itself."
    formula = f"{{s:scores}}[i, j] = −∞ where j > i: {T * (T - 1) // 2:,} of {T * T:,} cells"
    code = f"scores = scores.masked_fill(~torch.ones({T}, {T}, dtype=torch.bool).tril(), -math.inf)"
    arrays = {"scores": np.where(hidden, -np.inf, scores)}
    return Step("mask", "Mask: hide what comes later", why, formula, code, sentence, arrays, drawn)


def softmax(at: At) -> Step:
    """arrays: pattern (T, T), rows sum to 1."""
    T = at.T
    pattern = double(at.look.pattern(at.layer)[at.head])
    row = pattern[at.query]
    best = int(row.argmax())
    half = int(np.searchsorted(np.cumsum(np.sort(row)[::-1]), 0.5) + 1)
    seen = at.query + 1 if at.config.causal else T
    why = (
        "A blend needs shares: none below 0, in all 1. Exp makes a share of any score, and makes differences count as "
        "factors: 1 more in score is 2.7 times the weight."
    )
    sentence = (
        f"{at.asks} looks most at {at.placed(best)} ({row[best]:.2f}); "
        + (
            f"{half} of {seen} tokens hold{'s' * (half == 1)} half of its weight. "
            if seen > 1
            else "it sees no other. "
        )
        + (f"{at.answers} gets {row[at.key]:.4f}. " if at.key != best else "")
        + f"The row sums to {row.sum():.6f}."
    )
    formula = f"{{s:pattern}}[i, j] = exp({{s:score}}[i, j]) ÷ Σ exp({{s:score}}[i, ·]): ({T}, {T}), each row sums to 1"
    code = "pattern = scores.softmax(dim=-1)  # exp(scores) / exp(scores).sum(dim=-1, keepdim=True)"
    drawn = {"pattern": f"pattern[0, {at.head}]"}
    title = "Softmax: scores become shares"
    return Step("softmax", title, why, formula, code, sentence, {"pattern": pattern}, drawn)


def blend(at: At) -> Step:
    """arrays: parts (n, D), weight · value of the most watched tokens, the rest in one row; z (D,), their sum."""
    T, D, query = at.T, at.D, at.query
    row = double(at.look.pattern(at.layer)[at.head, query])
    values = double(at.look.values(at.layer)[at.head])
    parts = row[:, None] * values
    watched = [int(j) for j in np.argsort(-row, kind="stable")[:TOP] if row[j] > 0]
    labels = [f"{row[j]:.2f} × {j} {at.look.tokens[j]}" for j in watched]
    shown, drawn = [parts[j] for j in watched], f"parts[{watched}]"
    if (left := int((row > 0).sum()) - len(watched)) > 0:
        labels.append(f"{left} other{'s' * (left > 1)}")
        shown.append(parts.sum(axis=0) - sum(shown))
        drawn = f"torch.cat(({drawn}, parts.sum(dim=0, keepdim=True) - {drawn}.sum(dim=0, keepdim=True)))"
    z = at.rows("z")[query, at.head]
    place = f"[0, {at.head}, {query}"
    code = f"parts = pattern{place}, :, None] * v[0, {at.head}]  # ({T}, {D})\nz = pattern @ v"
    why = (
        "The weights say where to look; the values are what is found there. Each is scaled by its weight, and the "
        "sum is all that this head takes along."
    )
    formula = f"{{s:pattern}} ({T}, {T}) · {{v:v}} ({T}, {D}) = z ({T}, {D})"
    drawn = {"parts": drawn, "z": f"z{place}]"}
    arrays = {"parts": np.stack(shown), "z": z}
    sentence = _share_of_blend(at, row, parts, z)
    return Step("blend", "Blend the values", why, formula, code, sentence, arrays, drawn, tuple(labels))


def _share_of_blend(at: At, row: np.ndarray, parts: np.ndarray, z: np.ndarray) -> str:
    """Weight is not share: what counts is how far a part reaches along the blend."""
    first, length = int(row.argmax()), norm(z)
    if length < 1e-9:
        weight = percent(row[first], 0)
        return f"{at.placed(first)} has most of the weight ({weight}), but the blend is 0: nothing is taken."
    shares = parts @ z / length**2  # sums to 1
    most = int(shares.argmax())
    told = (
        f"{at.placed(first)} has {percent(row[first], 0)} of the weight and makes {percent(shares[first], 0)} of the "
        f"blend, measured along it (cosine {signed(cosine(parts[first], z))}). "
    )
    if most != first:
        told += f"The largest share, {percent(shares[most], 0)}, is that of {at.placed(most)} with "
        told += f"{percent(row[most], 0)} of weight. "
    if shares.min() < -0.02:
        against = int(shares.argmin())
        told += f"{at.placed(against)} points against it ({percent(shares[against], 0)}). "
    return f"{told}The blend has length {length:.2f}."
