"""The steps before attention: tokens become vectors, earlier layers add to them, the norm rescales them."""

from __future__ import annotations

from ..numbers import signed
from .described import Described, Here, norm_code, norm_formula


def embed(at: Here) -> Described:
    config, T, d = at.config, at.T, at.d
    shown = ", ".join(map(str, at.look.ids[:12])) + (", …" if T > 12 else "")
    code = f"# given: model, and ids = [{shown}], {T} token{'s' * (T != 1)}\nx = model.embedding(torch.tensor([ids]))"
    scale = ""
    if config.scale_embeddings:
        scale, code = " · √d", code + f" * math.sqrt({d})"
    why = "Token ids are only names: number 7 is not more than number 3. So each token gets its own learned vector. "
    if config.positions in ("learned", "sinusoidal"):
        table = "model.position_embedding.weight" if config.positions == "learned" else "model.sinusoids"
        kind = "a learned vector" if config.positions == "learned" else "a vector of sines and cosines"
        code += f"\nx = x + {table}[:{T}]"
        formula = f"x = E[ids]{scale} + P[0 … {T - 1}]: ({T}, {d}) + ({T}, {d}) = ({T}, {d})"
        why += f"Attention alone ignores order, so {kind} is added for each position."
    else:
        formula = f"x = E[ids]{scale}: ids ({T},) → ({T}, {d})"
        why += {
            "rotary": "Position comes later, in attention.",
            "none": "Only the mask reveals its position: later tokens see more."
            if config.causal
            else "Nothing encodes its position: this model ignores token order.",
        }[config.positions]
    sentence = (
        f"{at.query_token} is row {at.look.ids[at.query]} of a table of {config.vocab_size:,}. "
        f"Its vector at position {at.query} has length {at.facts['length']:.2f}."
    )
    return Described("Tokens become vectors", why, formula, code, sentence, {"stream": "x[0]"})


def arrive(at: Here) -> Described:
    then, now, alike = (at.facts[name] for name in ("embedded_length", "length", "cosine"))
    rotary = (
        f"rotary = model.cosines[:{at.T}], model.sines[:{at.T}]"
        if at.config.positions == "rotary"
        else "rotary = None  # positions are in x already"
    )
    code = f"{rotary}\nfor i, block in enumerate(model.blocks[:{at.layer}]):\n    x, _ = block(x, rotary, Pass(), i)"
    layers = "layer 0" if at.layer == 1 else f"layers 0 to {at.layer - 1}"
    formula = f"x ← block(x) for {layers}: ({at.T}, {at.d}) stays ({at.T}, {at.d})"
    why = (
        f"Layers build on each other. Layer {at.layer} reads the embedding plus all that {layers} added"
        f"{'' if at.pre else ', normalised after each sum'}."
    )
    sentence = (
        f"{at.query_token} began with length {then:.2f} and has length {now:.2f} here. The cosine of the two is "
        f"{signed(alike)}: 1 would be the same direction, 0 a right angle."
    )
    return Described(f"The vectors after {layers}", why, formula, code, sentence, {"stream": "x[0]"})


def norm(at: Here) -> Described:
    lengths = at.facts["lengths_before"], at.facts["lengths_after"]
    code = f"block = model.blocks[{at.layer}]\n" + norm_code(at.config, "x", "block.attention_norm", "h")
    why = (
        "Vectors grow from layer to layer, some more than others. The norm brings them to one scale, so the next "
        "weights always get numbers of about the same size."
    )
    before, after = (f"{each.min():.2f} to {each.max():.2f}" for each in lengths)
    sentence = f"Lengths of the vectors in this prompt: {before} before, {after} after."
    formula = f"h = {norm_formula(at.config)}: ({at.T}, {at.d}), each row by itself"
    return Described("Bring every vector to one scale", why, formula, code, sentence, {"stream": "h[0]"})
