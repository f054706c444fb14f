"""The steps after attention: project back, add, MLP, predict."""

from __future__ import annotations

from ..numbers import listed, percent, share, signed
from .described import Described, Here, linear, norm_code, norm_formula

ACTIVATIONS = {"relu": "ReLU", "relu2": "squared ReLU", "gelu": "GELU", "swiglu": "SwiGLU"}


def output(at: Here) -> Described:
    config, T, H, D, d, query = at.config, at.T, at.H, at.D, at.d, at.query
    lengths = at.facts["lengths"]
    most = int(lengths.argmax())
    bias = " + b" if config.attention_output_bias else ""
    formula = f"z of all heads side by side ({T}, {H * D}) · Wo ({H * D}, {d}){bias} = ({T}, {d})"
    code = (
        f"out = {linear('z.transpose(1, 2).flatten(2)', 'attention.out', config.attention_output_bias)}\n"
        f"W_o = attention.out.weight.T.view({H}, {D}, {d})\n"
        f"written = torch.stack([z[0, h, {query}] @ W_o[h] for h in range({H})])"
    )
    why = (
        f"A head's result has {D} numbers of its own. W_o turns them into the {d} numbers that all layers share. "
        "So several heads can add to the same numbers."
    )
    own = f"; head {at.head} writes {lengths[at.head]:.2f}" if at.head != most else ""
    sentence = f"Head {most} writes most for {at.query_token} (length {lengths[most]:.2f}){own}."
    labels = (*(f"head {h} · {n:.2f}" for h, n in enumerate(lengths)), f"sum{bias} = out")
    expressions = {"written": "written", "out": f"out[0, {query}]"}
    return Described("Project back", why, formula, code, sentence, expressions, labels)


def add(at: Here) -> Described:
    config, query = at.config, at.query
    delta, alike, most = (at.arrays[name] for name in ("delta", "cosine", "most"))
    code = "before = x\n"
    if at.pre:
        formula, code = "x ← x + out", code + "x = x + out"
        why = (
            "Attention adds to a vector instead of replacing it, so the work of earlier layers stays readable. In "
            "training, the gradient has a direct path back through the sum (residual connection)."
        )
    else:
        formula = f"x ← norm(x + out), {norm_formula(config, 'y')}"
        code += "y = x + out\n" + norm_code(config, "y", "block.attention_norm", "x")
        why = (
            "Attention adds to a vector instead of replacing it. Here the norm comes after the sum (post-norm) and "
            "brings every sum to one scale."
        )
    code += (
        "\ndelta = (x - before)[0].norm(dim=-1)\nalike = F.cosine_similarity(x[0], before[0], dim=-1)"
        f"\nmost = pattern[0, {at.head}].argmax(dim=-1)"
    )
    formula += f": ({at.T}, {at.d}); ‖Δ‖ = length of (x after − x before)"
    by = f"‖Δ‖ = {delta[query]:.2f} (cosine {signed(alike[query])})"
    who = "Attention changes" if at.pre else "Attention and the norm change"
    sentence = f"{who} {at.query_token} by {by}. Head {at.head} attends most to {at.placed(int(most[query]))}."
    expressions = {"delta": "delta", "cosine": "alike", "most": "most"}
    return Described("Add to the stream", why, formula, code, sentence, expressions)


def mlp(at: Here) -> Described:
    return _experts(at) if at.config.has_experts(at.layer) else _neurons(at)


def _neurons(at: Here) -> Described:
    config, query, width = at.config, at.query, at.config.ff_width
    neurons, active = at.facts["neurons"], at.facts["active"]
    lift, bias = "feedforward.up", config.feedforward_bias
    lifted = linear("h", lift, bias)
    if config.activation == "swiglu":
        lines = f"gate = {linear('h', 'feedforward.gate', bias)}\nhidden = F.silu(gate) * ({lifted})"
        form = "silu(h · W_gate) ⊙ (h · W_up)"
    else:
        form = {"relu": "max(0, a)", "relu2": "max(0, a)²", "gelu": "a · Φ(a)"}[config.activation]
        call = {"relu": "F.relu({})", "relu2": "F.relu({}).square()", "gelu": "F.gelu({})"}[config.activation]
        call = call.replace("({})", "({}, approximate='tanh')") if config.gelu_tanh and "gelu" in call else call
        lines = f"a = {lifted}\nhidden = {call.format('a')}"
    code = "\n".join((_read(at), "feedforward = block.feedforward", lines,
                      f"mlp_out = {linear('hidden', 'feedforward.down', bias)}", _added(at)))  # fmt: skip
    formula = f"({at.T}, {at.d}) → ({at.T}, {width}), {form} → ({at.T}, {at.d}); x ← " + (
        "x + mlp_out" if at.pre else "norm(x + mlp_out)"
    )
    why = (
        "Attention only averages the tokens' values. The MLP works on each token alone. Its activation "
        f"({ACTIVATIONS[config.activation]}) can express “this and that, but not the other”, which no sum can. The "
        f"MLPs have {percent(at.facts['share'], 0)} of this model's parameters."
    )
    beyond = "above 0.01" if config.activation.startswith("relu") else "above 0.01 or below −0.01"
    sentence = (
        f"Active neurons for {at.query_token} ({beyond}): {active} of {width}. "
        f"Neuron {neurons[0]} responds most: {signed(at.arrays['values'][0])}"
    )
    expressions = {"values": f"hidden[0, {query}, {neurons}]"}
    title, labels = "MLP: every token by itself", tuple(map(str, neurons))
    return Described(title, why, formula, code, f"{sentence}. {_effect(at)}", expressions, labels)


def _experts(at: Here) -> Described:
    config, query = at.config, at.query
    E, K, width = config.n_experts, config.experts_per_token, config.expert_width
    nudged = " + feedforward.selection_bias" if config.balance == "bias" else ""
    code = (
        f"{_read(at)}\nfeedforward = block.feedforward\nlogits = h @ feedforward.router.weight.T\n"
        "probabilities = logits.softmax(dim=-1)\n"
        f"experts = (probabilities{nudged}).topk({K}).indices\n"
        "weights = logits.gather(-1, experts).softmax(dim=-1)\n"
        "mlp_out = feedforward.apply_experts(h, experts, weights)  # each chosen expert's output times its weight\n"
    ).replace("(probabilities).", "probabilities.")
    if config.shared_expert:
        code += "mlp_out = mlp_out + feedforward.shared.down(feedforward.shared.hidden(h))\n"
    code += _added(at)
    formula = (
        f"router: ({at.T}, {at.d}) · ({at.d}, {E}) → softmax → the {K} best of {E}, each {at.d} → {width} → {at.d}, "
        "summed by weight"
    )
    why = (
        f"{E} MLPs hold {E} times the weights, but a token uses and pays for only {K} of them. The router, one small "
        "matrix, decides which."
    )
    if K == E:
        why = f"{E} MLPs hold {E} times the weights. A token uses all of them; the router decides their shares."
    if config.shared_expert:
        why += " All tokens also use one shared expert."
    used = listed([f"expert {e} ({w:.2f})" for e, w in zip(at.facts["experts"], at.facts["weights"])])
    sentence = f"{at.query_token} uses {used}. {_effect(at)}"
    expressions = {"values": f"probabilities[0, {query}]"}
    labels = tuple(f"expert {e}" for e in range(E))
    return Described("MLP: experts", why, formula, code, sentence, expressions, labels)


def _read(at: Here) -> str:
    """Code: the MLP's input."""
    return norm_code(at.config, "x", "block.feedforward_norm", "h") if at.pre else "h = x"


def _added(at: Here) -> str:
    """Code: the MLP's output is added to the stream."""
    if at.pre:
        return "x = x + mlp_out"
    return "y = x + mlp_out\n" + norm_code(at.config, "y", "block.feedforward_norm", "x")


def _effect(at: Here) -> str:
    return f"The MLP adds a vector of length {at.facts['added']:.2f} to one of length {at.facts['length']:.2f}."


def predict(at: Here) -> Described:
    config, T, d, V, query, look = at.config, at.T, at.d, at.config.vocab_size, at.query, at.look
    facts, best = at.facts, at.arrays["tokens"].tolist()
    labels = tuple(look.token_label(token) for token in best)
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
    code += norm_code(config, "x", "model.final_norm", "h")
    code += f"\nlogits = {linear('h', 'model.head', config.head_bias)}\nprobabilities = logits.softmax(dim=-1)"
    why = (
        f"The vector must become a prediction: one score for each of the {V:,} tokens of the vocabulary. A score says "
        "how well the vector fits that token's column of W, the output matrix. Softmax turns scores into "
        "probabilities."
    )
    if facts["next_token"] is not None:
        what = (
            f"The real next token, {at.named(query + 1)}, has {share(facts['next_probability'])} and rank "
            f"{facts['next_rank']}, so the loss here is {facts['next_loss']:.4f}."
        )
    else:
        what = "This is the prediction for the token after the prompt."
    chance = share(float(at.arrays["probabilities"][0]))
    sentence = f"After {at.query_token} the model expects “{labels[0]}” ({chance}). {what}"
    expressions = {"probabilities": f"probabilities[0, {query}, {best}]", "logits": f"logits[0, {query}, {best}]"}
    expressions["tokens"] = f"logits[0, {query}].topk({len(best)}).indices"
    return Described("Logits, then probabilities", why, formula, code, sentence, expressions, labels)
