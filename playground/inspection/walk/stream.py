"""The steps after attention: project back, add, think, predict."""

from __future__ import annotations

import numpy as np

from ...figures.wire import percent, signed
from .step import TOP, At, Step, cosine, double, linear, norm, norm_formula, normalise

ACROSS = 0.05
"""A mean cosine no further from 0 than this is that of vectors nearly at right angles."""
BENDS = {"relu": "ReLU", "relu2": "squared ReLU", "gelu": "GELU", "swiglu": "SwiGLU"}


def output(at: At) -> Step:
    """arrays: written (H, d), what each head adds for the query; out (d,), their sum and the bias."""
    config, T, H, D, d, query = at.config, at.T, at.H, at.D, at.d, at.query
    z, out = at.rows("z")[query], at.rows("attn_out")[query]
    weight = double(at.look.model.blocks[at.layer].attention.out.weight)  # (d, H·D)
    written = np.stack([weight[:, h * D : (h + 1) * D] @ z[h] for h in range(H)])
    lengths = np.linalg.norm(written, axis=1)
    most = int(lengths.argmax())
    bias = " + b" if config.attention_output_bias else ""
    formula = f"z of all heads side by side ({T}, {H * D}) · W_o ({H * D}, {d}){bias} = ({T}, {d})"
    code = (
        f"out = {linear('z.transpose(1, 2).flatten(2)', 'attention.out', config.attention_output_bias)}\n"
        f"W_o = attention.out.weight.T.view({H}, {D}, {d})\n"
        f"written = torch.stack([z[0, h, {query}] @ W_o[h] for h in range({H})])"
    )
    why = (
        f"What a head found stands in {D} numbers that only this head understands. W_o says it in the {d} numbers that "
        "all layers share, and so lets several heads write about one thing."
    )
    sentence = f"Head {most} writes most for {at.asks} (length {lengths[most]:.2f})"
    sentence += "" if at.head == most else f", head {at.head} writes {lengths[at.head]:.2f}"
    if lengths[most] < 0.005:
        sentence = f"No head writes anything for {at.asks} that two decimals show"
    elif (lengths > 0.05 * lengths.sum()).sum() > 1:
        sentence += f". {_together(lengths, norm(written.sum(axis=0)))}"
    labels = (*(f"head {h} · {n:.2f}" for h, n in enumerate(lengths)), f"sum{bias} = out")
    drawn = {"written": "written", "out": f"out[0, {query}]"}
    arrays = {"written": written, "out": out}
    return Step("output", "Project back", why, formula, code, f"{sentence}.", arrays, drawn, labels)


def _together(lengths: np.ndarray, whole: float) -> str:
    """Whether vectors of these lengths, whose sum has length `whole`, point the same way or cancel."""
    apart, across = float(lengths.sum()), norm(lengths)
    alike = (whole**2 - across**2) / (apart**2 - across**2)  # the mean cosine of two of them, weighed by their lengths
    how = "in part they cancel"
    if alike > -ACROSS:
        how = "they are nearly at right angles"
    if alike > ACROSS:
        how = "they point much the same way" if alike > 0.7 else "they partly point the same way"
    return (
        f"The lengths add up to {apart:.2f}, at right angles they would make {across:.2f}, and the sum of the vectors "
        f"has {whole:.2f}: {how}"
    )


def change(at: At) -> Step:
    """arrays: delta, cosine (T,): ‖after − before‖, and their cosine; most (T,), what the head watches most."""
    config, query = at.config, at.query
    before, after = at.rows("resid_pre"), at.rows("resid_mid")
    delta = np.linalg.norm(after - before, axis=1)
    alike = np.array([cosine(b, a) for b, a in zip(before, after)])
    most = double(at.look.pattern(at.layer)[at.head]).argmax(axis=1)
    moved = int(alike.argmin())
    code = "before = x\n"
    if at.pre:
        formula, code = "x ← x + out", code + "x = x + out"
        why = (
            "Attention adds to a vector, it does not replace it: what earlier layers found stays readable, and in "
            "training the gradient has a straight way back through the sum (residual connection)."
        )
    else:
        formula = f"x ← norm(x + out), {norm_formula(config, 'y')}"
        code += "y = x + out\n" + normalise(config, "y", "block.attention_norm", "x")
        why = (
            "Attention adds to a vector, it does not replace it; here the norm stands after the sum (post-norm) and "
            "brings every sum to one scale, the short ones up, the long ones down."
        )
    code += (
        "\ndelta = (x - before)[0].norm(dim=-1)\nalike = F.cosine_similarity(x[0], before[0], dim=-1)"
        f"\nmost = pattern[0, {at.head}].argmax(dim=-1)"
    )
    formula += f": ({at.T}, {at.d}); ‖Δ‖ = length of (x after − x before)"
    by = f"‖Δ‖ = {delta[query]:.2f} (cosine {signed(alike[query])})"
    sentence = f"Attention changes {at.asks} by {by}."
    if not at.pre:
        written = at.rows("attn_out")[query]
        sentence = (
            f"Attention adds a vector of length {norm(written):.2f} to {at.asks}, of length {norm(before[query]):.2f}; "
            f"the norm takes their sum from length {norm(before[query] + written):.2f} to {norm(after[query]):.2f}. "
            f"Both together change it by {by}."
        )
    sentence += f" Head {at.head} watches {at.placed(int(most[query]))} most."
    if signed(alike[moved]) != signed(alike[query]):
        sentence += f" The token turned most is {at.placed(moved)} (cosine {signed(alike[moved])})."
    if config.n_layers > 1:
        norms = "" if at.pre else ", the norm's part in it"
        sentence += f" Mean |Δ| of a number{norms}, layer by layer: {_by_layer(at)}."
    arrays = {"delta": delta, "cosine": alike, "most": most}
    drawn = {"delta": "delta", "cosine": "alike", "most": "most"}
    return Step("change", "Add to the stream", why, formula, code, sentence, arrays, drawn)


def _by_layer(at: At) -> str:
    """How far each layer's attention, and a norm after it, moves a number of the stream, on average; of many some."""
    count = at.config.n_layers
    layers = sorted({at.layer, count - 1, *range(0, count, 1 if count <= 8 else -(-count // 6))})
    means = [np.abs(at.rows("resid_mid", layer) - at.rows("resid_pre", layer)).mean() for layer in layers]
    return ", ".join(f"{mean:.2f}" + f" (layer {layer})" * (len(means) > 4) for layer, mean in zip(layers, means))


def think(at: At) -> Step:
    """arrays: values (n,), the strongest neurons of the query token, or the probability of every expert;
    chosen (n,), only with experts: 1 where one is visited."""
    return _experts(at) if at.config.has_experts(at.layer) else _neurons(at)


def _neurons(at: At) -> Step:
    config, query, width = at.config, at.query, at.config.ff_width
    hidden = at.rows("ff_hidden")[query]
    strongest = np.argsort(-np.abs(hidden), kind="stable")[: 2 * TOP]
    active = int((np.abs(hidden) > 0.01).sum())
    lift, bias = "feedforward.up", config.feedforward_bias
    lifted = linear("h", lift, bias)
    if config.activation == "swiglu":
        lines = f"gate = {linear('h', 'feedforward.gate', bias)}\nhidden = F.silu(gate) * ({lifted})"
        bend = "silu(h · W_gate) ⊙ (h · W_up)"
    else:
        bend = {"relu": "max(0, a)", "relu2": "max(0, a)²", "gelu": "a · Φ(a)"}[config.activation]
        call = {"relu": "F.relu({})", "relu2": "F.relu({}).square()", "gelu": "F.gelu({})"}[config.activation]
        call = call.replace("({})", "({}, approximate='tanh')") if config.gelu_tanh and "gelu" in call else call
        lines = f"a = {lifted}\nhidden = {call.format('a')}"
    code = "\n".join((_read(at), "feedforward = block.feedforward", lines,
                      f"thought = {linear('hidden', 'feedforward.down', bias)}", _added(at)))  # fmt: skip
    formula = f"({at.T}, {at.d}) → ({at.T}, {width}), {bend} → ({at.T}, {at.d}); x ← " + (
        "x + thought" if at.pre else "norm(x + thought)"
    )
    share = at.config.parameters_by_component()["feed-forward"] / at.config.n_parameters
    why = (
        "Attention only mixes what tokens have. Here each token is worked on alone: a number that is bent "
        f"({BENDS[config.activation]}) can say “this and that, but not the third”, which no sum can. "
        f"{percent(share, 0)} of this model's weights stand in such parts of its layers."
    )
    told = f"None of {width} neurons answers to {at.asks}. "
    if active:
        told = (
            f"{active} of {width} neurons answer{'s' * (active == 1)} to {at.asks} (above 0.01 or below −0.01), number "
            f"{strongest[0]} most ({signed(hidden[strongest[0]])}). "
        )
    sentence = told + _effect(at)
    arrays = {"values": hidden[strongest]}
    drawn = {"values": f"hidden[0, {query}, {strongest.tolist()}]"}
    labels = tuple(f"neuron {n}" for n in strongest)
    return Step("think", "Feed-forward: every token by itself", why, formula, code, sentence, arrays, drawn, labels)


def _experts(at: At) -> Step:
    config, query = at.config, at.query
    E, K, width = config.n_experts, config.experts_per_token, config.expert_width
    values = at.rows("router_probabilities")[query]
    experts = at.look.trace["experts", at.layer][0, query].tolist()
    weights = at.rows("expert_weights")[query]
    nudged = " + feedforward.selection_bias" if config.balance == "bias" else ""
    code = (
        f"{_read(at)}\nfeedforward = block.feedforward\nlogits = h @ feedforward.router.weight.T\n"
        "probabilities = logits.softmax(dim=-1)\n"
        f"experts = (probabilities{nudged}).topk({K}).indices\n"
        "weights = logits.gather(-1, experts).softmax(dim=-1)\n"
        "thought = feedforward.apply_experts(h, experts, weights)  # each visited expert's answer times its weight\n"
    ).replace("(probabilities).", "probabilities.")
    if config.shared_expert:
        code += "thought = thought + feedforward.shared.down(feedforward.shared.hidden(h))\n"
    code += f"{_added(at)}\nchosen = torch.zeros({E}).index_fill(0, experts[0, {query}], 1)"
    formula = (
        f"router: ({at.T}, {at.d}) · ({at.d}, {E}) → softmax → the {K} best of {E}, each {at.d} → {width} → {at.d}, "
        "summed by weight"
    )
    why = (
        f"{E} feed-forward layers hold {E} times the weights, but a token visits {K} of them and pays for {K}. The "
        "router, one small matrix, decides which."
    )
    if config.shared_expert:
        why += " One more, the shared expert, is visited by all."
    visits = " and ".join(f"expert {e} ({w:.2f})" for e, w in zip(experts, weights))
    sentence = f"{at.asks} visits {visits}. {_effect(at)}"
    chosen = np.isin(np.arange(E), experts).astype(float)
    drawn = {"values": f"probabilities[0, {query}]", "chosen": "chosen"}
    labels = tuple(f"expert {e}" for e in range(E))
    arrays = {"values": values, "chosen": chosen}
    return Step("think", "Feed-forward: experts", why, formula, code, sentence, arrays, drawn, labels)


def _read(at: At) -> str:
    """Code: what the feed-forward layer reads."""
    return normalise(at.config, "x", "block.feedforward_norm", "h") if at.pre else "h = x"


def _added(at: At) -> str:
    """Code: its answer joins the stream."""
    if at.pre:
        return "x = x + thought"
    return "y = x + thought\n" + normalise(at.config, "y", "block.feedforward_norm", "x")


def _effect(at: At) -> str:
    before, out = at.rows("resid_mid")[at.query], at.rows("ff_out")[at.query]
    return f"It adds a vector of length {norm(out):.2f} to one of length {norm(before):.2f}."


def predict(at: At) -> Step:
    """arrays: probabilities, logits (n,) of the best candidates after the query token; tokens (n,) their ids."""
    config, T, d, V, query, look = at.config, at.T, at.d, at.config.vocab_size, at.query, at.look
    logits = look.trace["logits"][0, query].double()
    probabilities = logits.softmax(dim=-1)
    best = probabilities.topk(min(TOP, V)).indices
    labels = tuple(look.token_label(int(t)) for t in best)
    bias = " + b" if config.head_bias else ""
    formula = f"norm(x) ({T}, {d}) · W ({d}, {V:,}){bias} = logits ({T}, {V:,}); softmax of row {query}"
    code = ""
    if (rest := config.n_layers - 1 - at.layer) > 0:
        formula = f"after {rest} more layer{'s' * (rest > 1)}: {formula}"
        rotary = f"model.cosines[:{T}], model.sines[:{T}]" if config.positions == "rotary" else "None"
        code = (
            f"rotary = {rotary}\nfor i, block in enumerate(model.blocks[{at.layer + 1}:], start={at.layer + 1}):\n"
            "    x, _ = block(x, rotary, Pass(), i)\n"
        )
    code += normalise(config, "x", "model.final_norm", "h")
    code += f"\nlogits = {linear('h', 'model.head', config.head_bias)}\nprobabilities = logits.softmax(dim=-1)"
    why = (
        f"The vector must become a guess: one score per token of the vocabulary, {V:,} in all, by how well the "
        "vector fits that token's column of W, the output matrix. Softmax makes probabilities of them, as it made "
        "weights before."
    )
    if query + 1 < look.length:
        true = look.ids[query + 1]
        rank = int((logits > logits[true]).sum()) + 1
        what = (
            f"What really follows, {at.named(query + 1)}, has {percent(float(probabilities[true]))} and rank {rank}: "
            f"a loss of {-float(probabilities[true].log()):.4f} nats here."
        )
    else:
        what = "This is the model's guess for the token after the prompt."
    sentence = f"After {at.asks} the model expects “{labels[0]}” ({percent(float(probabilities[best[0]]))}). {what}"
    arrays = {
        "probabilities": double(probabilities[best]),
        "logits": double(logits[best]),
        "tokens": best.cpu().numpy(),
    }
    listed = best.tolist()
    drawn = {"probabilities": f"probabilities[0, {query}, {listed}]", "logits": f"logits[0, {query}, {listed}]"}
    drawn["tokens"] = f"logits[0, {query}].topk({len(listed)}).indices"
    return Step("predict", "Logits, then probabilities", why, formula, code, sentence, arrays, drawn, labels)
