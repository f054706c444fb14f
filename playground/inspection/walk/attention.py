"""The steps inside attention: project, split, turn, compare, mask, share out, blend.

B = 1 prompt, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

import numpy as np

from ..look import Look
from .step import TOP, Step, cosine, double, norm, rows


def project(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: x (d,), q (H·D,), k, v (Hkv·D,) of the chosen token."""
    config, T, d = look.config, look.length, look.config.d_model
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    arrays = {"x": rows(look, "attn_in", layer)[query]}
    for name in "qkv":
        arrays[name] = rows(look, name, layer)[query].reshape(-1)
    normed = f"norm(x) ({T}, {d})" if config.norm_placement == "pre" else f"x ({T}, {d})"
    bias = " + b" if config.qkv_bias else ""
    if config.attention_layout == "separate_heads":
        formula = f"each of {H} heads: {normed} · {{q:W_q}}, {{k:W_k}}, {{v:W_v}} ({d}, {D}){bias} = ({T}, {D}) each"
        code = "q, k, v = (torch.stack(parts, dim=2) for parts in zip(*[head(x) for head in self.heads]))"
    else:
        formula = (
            f"{normed} · [{{q:W_q}} {{k:W_k}} {{v:W_v}}] ({d}, {(H + 2 * Hkv) * D}){bias} = ({T}, {(H + 2 * Hkv) * D})"
        )
        code = "qkv = self.qkv(x)"
    lengths = {
        name: norm(rows(look, name, layer)[query, look.kv_head(head) if name != "q" else head]) for name in "qkv"
    }
    qk_norm = (
        " Queries and keys are normalised (QK-norm), so their lengths hardly differ between tokens." * config.qk_norm
    )
    sentence = (
        f"“{look.tokens[query]}” asks with a query of length {lengths['q']:.2f} in head {head}, answers with a key of "
        f"length {lengths['k']:.2f} and hands over a value of length {lengths['v']:.2f}.{qk_norm}"
    )
    return Step("project", "Query, key and value", formula, code, sentence, arrays)


def split(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: q (H, D), k, v (Hkv, D) of the chosen token, head by head."""
    config, T = look.config, look.length
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    arrays = {name: rows(look, name, layer)[query] for name in "qkv"}
    if config.attention_layout == "separate_heads":
        formula = f"{{q:q}}, {{k:k}}, {{v:v}}: {H} × ({T}, {D}) → (1, {T}, {H}, {D}) → (1, {H}, {T}, {D})"
        code = "q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)"
    else:
        formula = (
            f"(1, {T}, {(H + 2 * Hkv) * D}) → (1, {T}, {H + 2 * Hkv}, {D}) → {{q:q}} (1, {H}, {T}, {D}), "
            f"{{k:k}} and {{v:v}} (1, {Hkv}, {T}, {D})"
        )
        code = "q, k, v = qkv.view(B, T, H + 2 * Hkv, D).split((H, Hkv, Hkv), dim=2)\n"
        code += "q, k, v = (x.transpose(1, 2) for x in (q, k, v))"
    if Hkv < H:
        group = H // Hkv
        sentence = (
            f"{H} queries share {Hkv} keys and values, {group} to one (grouped-query attention): head {head} reads "
            f"key/value head {look.kv_head(head)}. The cache holds {group} times less for it."
        )
    else:
        sentence = (
            f"No number changes here: the same {H * D} numbers are read as {H} heads of {D}, so that each head can "
            f"look somewhere else. Head {head} owns numbers {head * D} to {head * D + D - 1}."
        )
    return Step("split", "Split into heads", formula, code, sentence, arrays)


def turn(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: before, after (D/2, 2), the pairs of the query of this head; angles (D/2,) in radians."""
    config, D = look.config, look.config.d_head
    pairs = {}
    for name, source in (("before", "q"), ("after", "q_rotated")):
        vector = rows(look, source, layer)[query, head]
        pairs[name] = np.stack((vector[: D // 2], vector[D // 2 :]), axis=1)
    angles = query * config.rotary_base ** (-np.arange(0, D, 2) / D)
    full = int((angles >= 2 * np.pi).sum())
    sentence = (
        f"At position {query} the first pair of “{look.tokens[query]}” turns by {np.degrees(angles[0]):,.0f}°, the "
        f"last by {np.degrees(angles[-1]):.1f}°; {full} of {D // 2} pairs have gone full circle. Lengths stay, so "
        "{q:q} · {k:k} depends on the distance between two tokens and not on where they stand."
    )
    angle = f"p · {config.rotary_base:,.0f}^(−2i/{D})"
    formula = f"pair i of {{q:q}} and {{k:k}} at position p turns by {angle}, i = 0 … {D // 2 - 1}"
    code = "q, k = rotate(q, cosines, sines), rotate(k, cosines, sines)"
    return Step("turn", "Turn by position (rotary)", formula, code, sentence, {**pairs, "angles": angles})


def scores(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: scores (T, T) of this head, the hidden ones too."""
    T, D = look.length, look.config.d_head
    scores = double(look.scores(layer)[head])
    dot, seen = scores[query, key] * np.sqrt(D), scores[query, : query + 1] if look.config.causal else scores[query]
    best = int(seen.argmax())
    sentence = (
        f"“{look.tokens[query]}” · “{look.tokens[key]}” = {dot:.2f}, ÷ √{D} = {scores[query, key]:.2f}. Of what it may "
        f"see, it agrees most with {best} “{look.tokens[best]}” ({scores[query, best]:.2f})."
    )
    formula = f"{{s:scores}} = {{q:q}} ({T}, {D}) · {{k:k}}ᵀ ({D}, {T}) ÷ √{D} = ({T}, {T})"
    formula += f", in each of {look.config.n_heads} heads"
    code = "scores = q @ k.transpose(-2, -1) / math.sqrt(D)"
    return Step("scores", "Scores: every query meets every key", formula, code, sentence, {"scores": scores})


def mask(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: scores (T, T) with −inf where a query may not look."""
    T = look.length
    scores = double(look.scores(layer)[head])
    if not look.config.causal:
        formula, code = f"nothing is hidden: all {T * T:,} cells stay", "# this model has no mask"
        sentence = (
            "This model sees the future: while it trains, each token can look at its own answer, so its loss falls "
            "and its writing stays nonsense."
        )
        return Step("mask", "The mask", formula, code, sentence, {"scores": scores})
    hidden = np.triu(np.ones((T, T), dtype=bool), 1)
    lost = int((scores[query] > scores[query, : query + 1].max())[query + 1 :].sum())
    later = T - 1 - query
    what = (
        f"Later tokens hidden from “{look.tokens[query]}”: {later}; {lost} of them would have scored "
        "higher than anything it may see."
        if later
        else f"“{look.tokens[query]}” is the last token: nothing is hidden from it."
    )
    formula = f"{{s:scores}}[i, j] = −∞ where j > i: {T * (T - 1) // 2:,} of {T * T:,} cells"
    code = "scores = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)"
    return Step(
        "mask", "Mask: hide what comes later", formula, code, what, {"scores": np.where(hidden, -np.inf, scores)}
    )


def softmax(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: pattern (T, T), rows sum to 1."""
    T = look.length
    pattern = double(look.pattern(layer)[head])
    row = pattern[query]
    best = int(row.argmax())
    held = np.sort(row)[::-1]
    half = int(np.searchsorted(np.cumsum(held), 0.5) + 1)
    sentence = (
        f"“{look.tokens[query]}” looks most at {best} “{look.tokens[best]}” ({row[best]:.2f}); {half} "
        f"token{' holds' if half == 1 else 's hold'} half of its weight. “{look.tokens[key]}” gets {row[key]:.4f}. "
        f"The row sums to {row.sum():.6f}."
    )
    formula = f"{{s:pattern}}[i, j] = exp({{s:score}}[i, j]) ÷ Σ exp({{s:score}}[i, ·]): ({T}, {T}), each row sums to 1"
    return Step(
        "softmax",
        "Softmax: scores become shares",
        formula,
        "pattern = scores.softmax(dim=-1)",
        sentence,
        {"pattern": pattern},
    )


def blend(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: parts (n, D), weight · value of the most watched tokens, the rest in one row; z (D,), their sum."""
    T, D = look.length, look.config.d_head
    row = double(look.pattern(layer)[head, query])
    values = double(look.values(layer)[head])
    parts = row[:, None] * values
    watched = [int(j) for j in np.argsort(-row, kind="stable")[:TOP] if row[j] > 0]
    labels = [f"{row[j]:.2f} × {j} {look.tokens[j]}" for j in watched]
    shown = [parts[j] for j in watched]
    if (left := int((row > 0).sum()) - len(watched)) > 0:
        labels.append(f"{left} others")
        shown.append(parts.sum(axis=0) - sum(shown))
    z = rows(look, "z", layer)[query, head]
    first = watched[0]
    along = cosine(z, values[first])
    sentence = (
        f"The blend has length {norm(z):.2f}; it points {'mostly ' if along > 0.7 else ''}where the value of {first} "
        f"“{look.tokens[first]}” does (cosine {along:.2f}), which makes up {row[first]:.0%} of it."
    )
    formula = f"{{s:pattern}} ({T}, {T}) · {{v:v}} ({T}, {D}) = z ({T}, {D})"
    return Step(
        "blend",
        "Blend the values",
        formula,
        "z = pattern @ v",
        sentence,
        {"parts": np.stack(shown), "z": z},
        tuple(labels),
    )
