"""The walk: one prompt through one layer, step by step, each with its numbers, its formula, its line of PyTorch.

B = 1 prompt, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
Formulas mark the four roles as {q:…}, {k:…}, {v:…} and {s:…}, so that a page can colour them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from .look import Look

TOP = 10
"""Candidates, neurons or experts that a step lists."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the walk at one layer, head and token."""

    name: str
    title: str
    formula: str
    """With the real shapes of this model and prompt."""
    code: str
    """The PyTorch line that does it."""
    sentence: str
    """What to look for in these very numbers."""
    arrays: dict[str, np.ndarray]
    """What its picture draws; the function of the step says what is what."""
    labels: tuple[str, ...] = ()
    """Names of the rows of what is drawn, where they are not the prompt's tokens."""


def step_names(look: Look) -> tuple[str, ...]:
    """The steps in their order; `turn` only where positions are rotary."""
    return tuple(name for name in STEPS if name != "turn" or look.config.positions == "rotary")


def step(look: Look, name: str, layer: int, head: int, query: int, key: int) -> Step:
    """One step for this place."""
    return STEPS[name](look, layer, head, query, key)


def _embed(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: stream (T, d), what enters the layer."""
    config, T, d = look.config, look.length, look.config.d_model
    stream, embed = _rows(look, "resid_pre", layer), _rows(look, "embed")
    name = look.tokens[query]
    scale = " · √d" if config.scale_embeddings else ""
    code = "x = self.embedding(ids)" + (" * math.sqrt(d_model)" if config.scale_embeddings else "")
    if config.positions in ("learned", "sinusoidal"):
        place = look.trace["positions"].detach().cpu().double().numpy()[query]
        table = "learned" if config.positions == "learned" else "sines and cosines"
        formula = f"x = E[ids]{scale} + P[0 … {T - 1}]: ({T}, {d}) + ({T}, {d}) = ({T}, {d}) · P: {table}"
        code += (
            "\nx = x + position_embedding.weight[:T]" if config.positions == "learned" else "\nx = x + sinusoids[:T]"
        )
        order = f"Its position adds a vector of length {_norm(place):.2f} to an embedding of length {_norm(embed[query]):.2f}"
    else:
        formula = f"x = E[ids]{scale}: ids ({T},) → ({T}, {d})"
        order = f"Its embedding has length {_norm(embed[query]):.2f}; nothing is added to tell its position"
        if config.positions == "rotary":
            order += ", which comes later, by turning queries and keys"
    if layer:
        kept = _cosine(stream[query], embed[query])
        sentence = (
            f"“{name}” (id {look.ids[query]}) enters layer {layer} with length {_norm(stream[query]):.2f}; its cosine "
            f"with its own embedding is still {kept:.2f}. {order}."
        )
    else:
        sentence = f"“{name}” is row {look.ids[query]} of a table of {config.vocab_size:,} rows. {order}."
    return Step("embed", "Tokens become vectors", formula, code, sentence, {"stream": stream})


def _project(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: x (d,), q (H·D,), k, v (Hkv·D,) of the chosen token."""
    config, T, d = look.config, look.length, look.config.d_model
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    arrays = {"x": _rows(look, "attn_in", layer)[query]}
    for name in "qkv":
        arrays[name] = _rows(look, name, layer)[query].reshape(-1)
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
        name: _norm(_rows(look, name, layer)[query, look.kv_head(head) if name != "q" else head]) for name in "qkv"
    }
    qk_norm = (
        " Queries and keys are normalised (QK-norm), so their lengths hardly differ between tokens." * config.qk_norm
    )
    sentence = (
        f"“{look.tokens[query]}” asks with a query of length {lengths['q']:.2f} in head {head}, answers with a key of "
        f"length {lengths['k']:.2f} and hands over a value of length {lengths['v']:.2f}.{qk_norm}"
    )
    return Step("project", "Query, key and value", formula, code, sentence, arrays)


def _split(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: q (H, D), k, v (Hkv, D) of the chosen token, head by head."""
    config, T = look.config, look.length
    H, Hkv, D = config.n_heads, config.kv_heads, config.d_head
    arrays = {name: _rows(look, name, layer)[query] for name in "qkv"}
    if config.attention_layout == "separate_heads":
        formula = f"{{q:q}}, {{k:k}}, {{v:v}}: {H} × ({T}, {D}) → (1, {T}, {H}, {D}) → (1, {H}, {T}, {D})"
        code = "q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)"
    else:
        formula = (
            f"(1, {T}, {(H + 2 * Hkv) * D}) → (1, {T}, {H + 2 * Hkv}, {D}) → {{q:q}} (1, {H}, {T}, {D}), "
            f"{{k:k}} and {{v:v}} (1, {Hkv}, {T}, {D})"
        )
        code = "q, k, v = qkv.view(B, T, H + 2 * Hkv, D).split((H, Hkv, Hkv), dim=2)\nq, k, v = (x.transpose(1, 2) for x in (q, k, v))"
    if Hkv < H:
        group = H // Hkv
        sentence = (
            f"{H} queries share {Hkv} keys and values, {group} to one (grouped-query attention): head {head} reads "
            f"key/value head {look.kv_head(head)}. The cache holds {group} times less for it."
        )
    else:
        sentence = (
            f"No number changes here: the same {H * D} numbers are read as {H} heads of {D}, so that each head can look "
            f"somewhere else. Head {head} owns numbers {head * D} to {head * D + D - 1}."
        )
    return Step("split", "Split into heads", formula, code, sentence, arrays)


def _turn(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: before, after (D/2, 2), the pairs of the query of this head; angles (D/2,) in radians."""
    config, D = look.config, look.config.d_head
    pairs = {}
    for name, source in (("before", "q"), ("after", "q_rotated")):
        vector = _rows(look, source, layer)[query, head]
        pairs[name] = np.stack((vector[: D // 2], vector[D // 2 :]), axis=1)
    angles = query * config.rotary_base ** (-np.arange(0, D, 2) / D)
    full = int((angles >= 2 * np.pi).sum())
    sentence = (
        f"At position {query} the first pair of “{look.tokens[query]}” turns by {np.degrees(angles[0]):,.0f}°, the last by "
        f"{np.degrees(angles[-1]):.1f}°; {full} of {D // 2} pairs have gone full circle. Lengths stay, so {{q:q}} · {{k:k}} "
        "depends on the distance between two tokens and not on where they stand."
    )
    formula = f"pair i of {{q:q}} and {{k:k}} at position p turns by p · {config.rotary_base:,.0f}^(−2i/{D}), i = 0 … {D // 2 - 1}"
    code = "q, k = rotate(q, cosines, sines), rotate(k, cosines, sines)"
    return Step("turn", "Turn by position (rotary)", formula, code, sentence, {**pairs, "angles": angles})


def _scores(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: scores (T, T) of this head, the hidden ones too."""
    T, D = look.length, look.config.d_head
    scores = _double(look.scores(layer)[head])
    dot, seen = scores[query, key] * np.sqrt(D), scores[query, : query + 1] if look.config.causal else scores[query]
    best = int(seen.argmax())
    sentence = (
        f"“{look.tokens[query]}” · “{look.tokens[key]}” = {dot:.2f}, ÷ √{D} = {scores[query, key]:.2f}. Of what it may see, it "
        f"agrees most with {best} “{look.tokens[best]}” ({scores[query, best]:.2f})."
    )
    formula = f"{{s:scores}} = {{q:q}} ({T}, {D}) · {{k:k}}ᵀ ({D}, {T}) ÷ √{D} = ({T}, {T}), in each of {look.config.n_heads} heads"
    code = "scores = q @ k.transpose(-2, -1) / math.sqrt(D)"
    return Step("scores", "Scores: every query meets every key", formula, code, sentence, {"scores": scores})


def _mask(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: scores (T, T) with −inf where a query may not look."""
    T = look.length
    scores = _double(look.scores(layer)[head])
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
        f"{later} later token{'s' * (later != 1)} are hidden from “{look.tokens[query]}”; {lost} of them would have scored "
        "higher than anything it may see."
        if later
        else f"“{look.tokens[query]}” is the last token: nothing is hidden from it."
    )
    formula = f"{{s:scores}}[i, j] = −∞ where j > i: {T * (T - 1) // 2:,} of {T * T:,} cells"
    code = "scores = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)"
    return Step(
        "mask", "Mask: hide what comes later", formula, code, what, {"scores": np.where(hidden, -np.inf, scores)}
    )


def _softmax(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: pattern (T, T), rows sum to 1."""
    T = look.length
    pattern = _double(look.pattern(layer)[head])
    row = pattern[query]
    best = int(row.argmax())
    held = np.sort(row)[::-1]
    half = int(np.searchsorted(np.cumsum(held), 0.5) + 1)
    sentence = (
        f"“{look.tokens[query]}” looks most at {best} “{look.tokens[best]}” ({row[best]:.2f}); {half} "
        f"token{' holds' if half == 1 else 's hold'} half of its weight. “{look.tokens[key]}” gets {row[key]:.4f}. The row sums to {row.sum():.6f}."
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


def _blend(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: parts (n, D), weight · value of the most watched tokens, the rest in one row; z (D,), their sum."""
    T, D = look.length, look.config.d_head
    row = _double(look.pattern(layer)[head, query])
    values = _double(look.values(layer)[head])
    parts = row[:, None] * values
    watched = [int(j) for j in np.argsort(-row, kind="stable")[:TOP] if row[j] > 0]
    labels = [f"{row[j]:.2f} × {j} {look.tokens[j]}" for j in watched]
    shown = [parts[j] for j in watched]
    if (left := int((row > 0).sum()) - len(watched)) > 0:
        labels.append(f"{left} others")
        shown.append(parts.sum(axis=0) - sum(shown))
    z = _rows(look, "z", layer)[query, head]
    first = watched[0]
    along = _cosine(z, values[first])
    sentence = (
        f"The blend has length {_norm(z):.2f}; it points {'mostly ' if along > 0.7 else ''}where the value of {first} "
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


def _output(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: z (H, D) of all heads at the query; written (H,), length of what each adds; out (d,), the sum."""
    config, T = look.config, look.length
    H, D, d = config.n_heads, config.d_head, config.d_model
    z = _rows(look, "z", layer)[query]
    weight = _double(look.model.blocks[layer].attention.out.weight)  # (d, H·D)
    written = np.array([_norm(weight[:, h * D : (h + 1) * D] @ z[h]) for h in range(H)])
    most = int(written.argmax())
    bias = " + b" if config.attention_output_bias else ""
    formula = f"concatenate z: (1, {T}, {H}, {D}) → (1, {T}, {H * D}); · W_o ({H * D}, {d}){bias} = (1, {T}, {d})"
    sentence = (
        f"Head {most} writes most for “{look.tokens[query]}” (length {written[most]:.2f}), head {head} "
        f"{'is it' if head == most else f'writes {written[head]:.2f}'}. Together they add a vector of length "
        f"{_norm(_rows(look, 'attn_out', layer)[query]):.2f}."
    )
    arrays = {"z": z, "written": written, "out": _rows(look, "attn_out", layer)[query]}
    labels = tuple(f"head {h}" for h in range(H))
    return Step("output", "Concatenate and project", formula, "out = self.out(z.flatten(2))", sentence, arrays, labels)


def _change(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: delta, cosine, most (T,): ‖after − before‖, their cosine, the token the chosen head watches most."""
    before, after = _rows(look, "resid_pre", layer), _rows(look, "resid_mid", layer)
    delta = np.linalg.norm(after - before, axis=1)
    cosine = np.array([_cosine(b, a) for b, a in zip(before, after)])
    most = _double(look.pattern(layer)[head]).argmax(axis=1)
    moved = int(cosine.argmin())
    pre = look.config.norm_placement == "pre"
    formula = "x ← x + attention(norm(x))" if pre else "x ← norm(x + attention(x))"
    formula += f": ({look.length}, {look.config.d_model}), every number of {look.length} vectors"
    code = "x = x + self.attention(self.attention_norm(x))" if pre else "x = self.attention_norm(x + self.attention(x))"
    sentence = (
        f"Attention changes “{look.tokens[query]}” by ‖Δ‖ = {delta[query]:.2f} (cosine {cosine[query]:.2f}), having watched "
        f"{most[query]} “{look.tokens[most[query]]}” most in head {head}. The token it turns most is {moved} “{look.tokens[moved]}” "
        f"(cosine {cosine[moved]:.2f})."
    )
    return Step(
        "change", "What attention changed", formula, code, sentence, {"delta": delta, "cosine": cosine, "most": most}
    )


def _think(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: values (n,), the strongest neurons of the query token, or the probability of every expert;
    chosen (n,) 1 where an expert is visited (all 1 for neurons)."""
    config, T, d = look.config, look.length, look.config.d_model
    before, out = _rows(look, "resid_mid", layer)[query], _rows(look, "ff_out", layer)[query]
    effect = f"It adds a vector of length {_norm(out):.2f} to one of length {_norm(before):.2f}."
    if config.has_experts(layer):
        E, K = config.n_experts, config.experts_per_token
        values = _rows(look, "router_probabilities", layer)[query]
        experts = look.trace["experts", layer][0, query].tolist()
        weights = _rows(look, "expert_weights", layer)[query]
        visits = " and ".join(f"expert {e} ({w:.2f})" for e, w in zip(experts, weights))
        formula = (
            f"router: ({T}, {d}) · ({d}, {E}) → softmax → the {K} best of {E}, each {d} → {config.expert_width} → {d}"
        )
        code = "out, routing = self.feedforward(self.feedforward_norm(x))"
        sentence = f"“{look.tokens[query]}” visits {visits}. {effect}"
        chosen = np.isin(np.arange(E), experts).astype(float)
        return Step("think", "Feed-forward: experts", formula, code, sentence, {"values": values, "chosen": chosen},
                    tuple(f"expert {e}" for e in range(E)))  # fmt: skip
    hidden = _rows(look, "ff_hidden", layer)[query]
    strongest = np.argsort(-np.abs(hidden), kind="stable")[: 2 * TOP]
    active = int((hidden > 0.01).sum())
    gate = " ⊙ gate" if config.activation == "swiglu" else ""
    formula = f"({T}, {d}) → ({T}, {config.ff_width}), {config.activation}{gate} → ({T}, {d})"
    pre = config.norm_placement == "pre"
    code = (
        "x = x + self.feedforward(self.feedforward_norm(x))"
        if pre
        else "x = self.feedforward_norm(x + self.feedforward(x))"
    )
    sentence = (
        f"{active} of {config.ff_width} neurons answer to “{look.tokens[query]}” (above 0.01), number {strongest[0]} most "
        f"({hidden[strongest[0]]:.2f}). {effect}"
    )
    return Step("think", "Feed-forward: every token by itself", formula, code, sentence,
                {"values": hidden[strongest], "chosen": np.ones(len(strongest))},
                tuple(f"neuron {n}" for n in strongest))  # fmt: skip


def _predict(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: probabilities, logits (n,) of the best candidates after the query token; tokens (n,) their ids."""
    config, T, d, V = look.config, look.length, look.config.d_model, look.config.vocab_size
    logits = look.trace["logits"][0, query].double()
    probabilities = logits.softmax(dim=-1)
    best = probabilities.topk(min(TOP, V)).indices
    labels = tuple(look.token_label(int(t)) for t in best)
    bias = " + b" if config.head_bias else ""
    formula = f"norm(x) ({T}, {d}) · W ({d}, {V:,}){bias} = logits ({T}, {V:,}); softmax of row {query}"
    if (rest := config.n_layers - 1 - layer) > 0:
        formula = f"after {rest} more layer{'s' * (rest > 1)}: {formula}"
    if query + 1 < look.length:
        true = look.ids[query + 1]
        rank = int((logits > logits[true]).sum()) + 1
        what = (
            f" What really follows, “{look.tokens[query + 1]}”, has {float(probabilities[true]):.1%} and rank {rank}: "
            f"a loss of {-float(probabilities[true].log()):.4f} nats here."
        )
    else:
        what = " This is the model's guess for the token after the prompt."
    sentence = (
        f"After “{look.tokens[query]}” the model expects “{labels[0]}” ({float(probabilities[best[0]]):.1%}).{what}"
    )
    arrays = {
        "probabilities": _double(probabilities[best]),
        "logits": _double(logits[best]),
        "tokens": best.cpu().numpy(),
    }
    code = "probabilities = self.head(self.final_norm(x)).softmax(dim=-1)"
    return Step("predict", "Logits, then probabilities", formula, code, sentence, arrays, labels)


STEPS: dict[str, Callable[[Look, int, int, int, int], Step]] = {
    "embed": _embed,
    "project": _project,
    "split": _split,
    "turn": _turn,
    "scores": _scores,
    "mask": _mask,
    "softmax": _softmax,
    "blend": _blend,
    "output": _output,
    "change": _change,
    "think": _think,
    "predict": _predict,
}


def _rows(look: Look, name: str, layer: int | None = None) -> np.ndarray:
    """One intermediate of the prompt without its batch axis, in float64."""
    return _double(look.trace[name, layer][0])


def _double(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def _norm(vector: np.ndarray) -> float:
    return float(np.linalg.norm(vector))


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / max(_norm(a) * _norm(b), 1e-12))
