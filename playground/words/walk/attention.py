"""The steps that prepare queries, keys and values: project, split, normalise, rotate, share."""

from __future__ import annotations

import numpy as np

from ..numbers import listed, signed
from .described import Described, Here, linear


def project(at: Here) -> Described:
    config, T, d, H, Hkv, D = at.config, at.T, at.d, at.H, at.Hkv, at.D
    bias = " + b" if config.qkv_bias else ""
    code = (
        "" if at.pre else f"block, h = model.blocks[{at.layer}], x  # the norm comes after: attention reads x itself\n"
    )
    code += "attention = block.attention\n"
    if config.attention_layout == "separate_heads":
        formula = f"each of {H} heads: h ({T}, {d}) · {{q:Wq}}, {{k:Wk}}, {{v:Wv}} ({d}, {D}){bias} = ({T}, {D}) each"
        code += "\n".join(
            f"{n} = torch.cat([{linear('h', f'head.{n}', config.qkv_bias)} for head in attention.heads], dim=-1)"
            for n in "qkv"
        )
        expressions = {n: f"{n}[0, {at.query}]" for n in "qkv"}
    else:
        wide = (H + 2 * Hkv) * D
        formula = f"h ({T}, {d}) · [{{q:Wq}} {{k:Wk}} {{v:Wv}}] ({d}, {wide}){bias} = ({T}, {wide})"
        code += f"qkv = {linear('h', 'attention.qkv', config.qkv_bias)}"
        ends = {"q": (0, H * D), "k": (H * D, (H + Hkv) * D), "v": ((H + Hkv) * D, wide)}
        expressions = {n: f"qkv[0, {at.query}, {start}:{end}]" for n, (start, end) in ends.items()}
    why = (
        "Each token needs three vectors. Its {q:query} looks for other tokens, its {k:key} is matched with queries, "
        "and its {v:value} is passed on. Without the three matrices, a token could only look for vectors like its "
        "own."
    )
    q, k, v = (at.facts["lengths"][n] for n in "qkv")
    sentence = (
        f"In head {at.head}, {at.query_token} has a query of length {q:.2f}, a key of length {k:.2f} and a value of "
        f"length {v:.2f}."
    )
    expressions = {"x": f"h[0, {at.query}]", **expressions}
    return Described("Query, key and value", why, formula, code, sentence, expressions)


def split(at: Here) -> Described:
    config, T, H, Hkv, D = at.config, at.T, at.H, at.Hkv, at.D
    if config.attention_layout == "separate_heads":
        formula = f"{{q:q}}, {{k:k}}, {{v:v}}: {H} × ({T}, {D}) → ({H}, {T}, {D})"
        code = f"q, k, v = (each.view(1, {T}, {H}, {D}).transpose(1, 2) for each in (q, k, v))"
    else:
        formula = (
            f"({T}, {(H + 2 * Hkv) * D}) → ({T}, {H + 2 * Hkv}, {D}) → {{q:q}} ({H}, {T}, {D}), "
            f"{{k:k}} and {{v:v}} ({Hkv}, {T}, {D})"
        )
        code = f"q, k, v = qkv.view(1, {T}, {H + 2 * Hkv}, {D}).split(({H}, {Hkv}, {Hkv}), dim=2)\n"
        code += "q, k, v = (each.transpose(1, 2) for each in (q, k, v))"
    why = (
        "A token has one row of attention weights per head, and each row sums to 1. One head can attend to one "
        f"thing well{f'; {H} heads of {D} numbers each can attend to {H} things' * (H > 1)}."
    )
    first, last = at.head * D, at.head * D + D - 1
    sentence = f"No number changes here: head {at.head} owns numbers {first} to {last} of the query."
    expressions = {n: f"{n}[0, :, {at.query}]" for n in "qkv"}
    return Described("Split into heads", why, formula, code, sentence, expressions)


def qk_norm(at: Here) -> Described:
    config, kv, lengths = at.config, at.kv_head, at.facts["lengths"]
    code = "before = q, k\n" + "\n".join(
        f"{n} = {n} / ({n}.square().mean(-1, keepdim=True) + {config.norm_eps:g}).sqrt() * attention.{n}_norm.weight"
        for n in "qk"
    )
    formula = f"{{q:q}} ← {{q:q}} ÷ √(mean({{q:q}}²) + {config.norm_eps:g}) ⊙ gain, {{k:k}} likewise, each ({at.D},)"
    why = (
        "A score is a sum of products, so long queries and keys make huge scores. A head would then attend to a "
        "token only because its key is long. With one scale for all, only the direction counts (QK-norm)."
    )
    sentence = (
        f"The query of {at.query_token} goes from length {lengths['q_before']:.2f} to {lengths['q_after']:.2f}, its "
        f"key from {lengths['k_before']:.2f} to {lengths['k_after']:.2f}."
    )
    expressions = {
        "q_before": f"before[0][0, {at.head}, {at.query}]", "q_after": f"q[0, {at.head}, {at.query}]",
        "k_before": f"before[1][0, {kv}, {at.query}]", "k_after": f"k[0, {kv}, {at.query}]",
    }  # fmt: skip
    return Described("Normalise queries and keys", why, formula, code, sentence, expressions)


def rotate(at: Here) -> Described:
    D, query, half, base = at.D, at.query, at.D // 2, f"{at.config.rotary_base:g}"
    angles = np.degrees(at.arrays["angles"])
    here, later, nearer = (at.facts[name] for name in ("product", "both_later", "query_later"))
    code = (
        f"angle = torch.arange({at.T})[:, None] * {base} ** (-torch.arange(0, {D}, 2) / {D})\n"
        "cos, sin = angle.cos(), angle.sin()\n"
        f"def turned(x):  # pair i is numbers i and i + {half}\n"
        f"    a, b = x[..., :{half}], x[..., {half}:]\n"
        "    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)\n"
        "unturned, q, k = q, turned(q), turned(k)"
    )
    formula = (
        f"pair i is numbers i and i + {half} of {{q:q}} and of {{k:k}}: (a, b) at position p turns by "
        f"p · {base}^(−2i/{D}), i = 0 … {half - 1}"
    )
    why = (
        "A head should be able to find “the token before”, wherever that is. Rotation turns each query and key by "
        "angles that grow with its position. The angle between two of them then depends on their distance; shifting "
        "both leaves it unchanged."
    )
    sentence = (
        f"At position {query}, pair 0 of {at.query_token} turns by {angles[0]:,.0f}°, pair {half - 1} by "
        f"{angles[-1]:.1f}°. {{q:q}} · {{k:k}} with {at.key_token} is {signed(here)}. If both move five places on, it "
        f"is {signed(later)}; if only the query does, {signed(nearer)}."
    )
    pairs = f"[0, {at.head}, {query}].view(2, {half}).T"
    expressions = {"before": f"unturned{pairs}", "after": f"q{pairs}", "angles": f"angle[{query}]"}
    return Described("Rotate by position (rotary)", why, formula, code, sentence, expressions)


def share(at: Here) -> Described:
    H, Hkv = at.H, at.Hkv
    group, kind = H // Hkv, "Multi-query" if Hkv == 1 else "Grouped-query"
    fellows = at.facts["fellows"]
    code = f"k, v = k.repeat_interleave({group}, dim=1), v.repeat_interleave({group}, dim=1)"
    formula = f"{{k:k}}, {{v:v}} ({Hkv}, {at.T}, {at.D}) → ({H}, {at.T}, {at.D}): each is used {group} times"
    why = (
        "The cache keeps keys and values of all tokens so far, but not the queries. "
        f"{kind} attention has only {'one key and value' if Hkv == 1 else f'{Hkv} keys and values'} for {H} queries, "
        f"so the cache is {group} times smaller."
    )
    sentence = (
        f"Head {at.head} uses key and value {at.kv_head}, together with head{'s' * (len(fellows) > 1)} "
        f"{listed([str(head) for head in fellows])}."
    )
    labels = tuple(f"head {h} ← key {at.look.kv_head(h)}" for h in range(H))
    return Described("Share keys and values", why, formula, code, sentence, {"k": f"k[0, :, {at.key}]"}, labels)
