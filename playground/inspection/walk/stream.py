"""The steps on the residual stream: embed, project back, what attention changed, feed-forward, predict.

B = 1 prompt, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

import numpy as np

from ..look import Look
from .step import TOP, Step, cosine, double, norm, rows


def embed(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: stream (T, d), what enters the layer."""
    config, T, d = look.config, look.length, look.config.d_model
    stream, embed = rows(look, "resid_pre", layer), rows(look, "embed")
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
        order = f"Its position adds a vector of length {norm(place):.2f} to an embedding of {norm(embed[query]):.2f}"
    else:
        formula = f"x = E[ids]{scale}: ids ({T},) → ({T}, {d})"
        order = f"Its embedding has length {norm(embed[query]):.2f}; nothing is added to tell its position"
        if config.positions == "rotary":
            order += ", which comes later, by turning queries and keys"
    if layer:
        kept = cosine(stream[query], embed[query])
        sentence = (
            f"{order}. The picture shows x as it enters layer {layer}, with all that the layers before have added: "
            f"“{name}” has length {norm(stream[query]):.2f} there, and a cosine of {kept:.2f} with its own embedding."
        )
    else:
        sentence = f"“{name}” is row {look.ids[query]} of a table of {config.vocab_size:,} rows. {order}."
    return Step("embed", "Tokens become vectors", formula, code, sentence, {"stream": stream})


def output(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: z (H, D) of all heads at the query; written (H,), length of what each adds; out (d,), the sum."""
    config, T = look.config, look.length
    H, D, d = config.n_heads, config.d_head, config.d_model
    z = rows(look, "z", layer)[query]
    weight = double(look.model.blocks[layer].attention.out.weight)  # (d, H·D)
    written = np.array([norm(weight[:, h * D : (h + 1) * D] @ z[h]) for h in range(H)])
    most = int(written.argmax())
    bias = " + b" if config.attention_output_bias else ""
    formula = f"concatenate z: (1, {T}, {H}, {D}) → (1, {T}, {H * D}); · W_o ({H * D}, {d}){bias} = (1, {T}, {d})"
    sentence = (
        f"Head {most} writes most for “{look.tokens[query]}” (length {written[most]:.2f})"
        f"{'' if head == most else f', head {head} writes {written[head]:.2f}'}. Together they add a vector of length "
        f"{norm(rows(look, 'attn_out', layer)[query]):.2f}."
    )
    arrays = {"z": z, "written": written, "out": rows(look, "attn_out", layer)[query]}
    labels = tuple(f"head {h}" for h in range(H))
    return Step("output", "Concatenate and project", formula, "out = self.out(z.flatten(2))", sentence, arrays, labels)


def change(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: delta, cosine, most (T,): ‖after − before‖, their cosine, the token the chosen head watches most."""
    before, after = rows(look, "resid_pre", layer), rows(look, "resid_mid", layer)
    delta = np.linalg.norm(after - before, axis=1)
    alike = np.array([cosine(b, a) for b, a in zip(before, after)])
    most = double(look.pattern(layer)[head]).argmax(axis=1)
    moved = int(alike.argmin())
    pre = look.config.norm_placement == "pre"
    formula = "x ← x + attention(norm(x))" if pre else "x ← norm(x + attention(x))"
    formula += f": ({look.length}, {look.config.d_model}), every number of {look.length} vectors"
    code = "x = x + self.attention(self.attention_norm(x))" if pre else "x = self.attention_norm(x + self.attention(x))"
    sentence = (
        f"Attention changes “{look.tokens[query]}” by ‖Δ‖ = {delta[query]:.2f} (cosine {alike[query]:.2f}), having "
        f"watched {most[query]} “{look.tokens[most[query]]}” most in head {head}. The token it turns most is {moved} "
        f"“{look.tokens[moved]}” (cosine {alike[moved]:.2f})."
    )
    return Step(
        "change", "What attention changed", formula, code, sentence, {"delta": delta, "cosine": alike, "most": most}
    )


def think(look: Look, layer: int, head: int, query: int, key: int) -> Step:
    """arrays: values (n,), the strongest neurons of the query token, or the probability of every expert;
    chosen (n,) 1 where an expert is visited (all 1 for neurons)."""
    config, T, d = look.config, look.length, look.config.d_model
    before, out = rows(look, "resid_mid", layer)[query], rows(look, "ff_out", layer)[query]
    effect = f"It adds a vector of length {norm(out):.2f} to one of length {norm(before):.2f}."
    if config.has_experts(layer):
        E, K = config.n_experts, config.experts_per_token
        values = rows(look, "router_probabilities", layer)[query]
        experts = look.trace["experts", layer][0, query].tolist()
        weights = rows(look, "expert_weights", layer)[query]
        visits = " and ".join(f"expert {e} ({w:.2f})" for e, w in zip(experts, weights))
        formula = (
            f"router: ({T}, {d}) · ({d}, {E}) → softmax → the {K} best of {E}, each {d} → {config.expert_width} → {d}"
        )
        code = "out, routing = self.feedforward(self.feedforward_norm(x))"
        sentence = f"“{look.tokens[query]}” visits {visits}. {effect}"
        chosen = np.isin(np.arange(E), experts).astype(float)
        return Step("think", "Feed-forward: experts", formula, code, sentence, {"values": values, "chosen": chosen},
                    tuple(f"expert {e}" for e in range(E)))  # fmt: skip
    hidden = rows(look, "ff_hidden", layer)[query]
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
        f"{active} of {config.ff_width} neurons answer to “{look.tokens[query]}” (above 0.01), number {strongest[0]} "
        f"most ({hidden[strongest[0]]:.2f}). {effect}"
    )
    return Step("think", "Feed-forward: every token by itself", formula, code, sentence,
                {"values": hidden[strongest], "chosen": np.ones(len(strongest))},
                tuple(f"neuron {n}" for n in strongest))  # fmt: skip


def predict(look: Look, layer: int, head: int, query: int, key: int) -> Step:
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
        "probabilities": double(probabilities[best]),
        "logits": double(logits[best]),
        "tokens": best.cpu().numpy(),
    }
    code = "probabilities = self.head(self.final_norm(x)).softmax(dim=-1)"
    return Step("predict", "Logits, then probabilities", formula, code, sentence, arrays, labels)
