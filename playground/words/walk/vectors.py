"""The steps before attention: tokens become vectors, the layers before write into them, the norm makes them alike."""

from __future__ import annotations

from ..numbers import signed
from .described import Described, Here, norm_code, norm_formula


def embed(at: Here) -> Described:
    """Each token becomes its row of a table."""
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
            "rotary": "Position comes later: the model rotates queries and keys.",
            "none": "Its position shows in nothing but the mask, which lets later tokens see more."
            if config.causal
            else "Its position shows nowhere: this model cannot tell order.",
        }[config.positions]
    sentence = f"{at.query_token} is row {at.look.ids[at.query]} of a table of {config.vocab_size:,}. {_copies(at)}"
    return Described("Tokens become vectors", why, formula, code, sentence, {"stream": "x[0]"})


def _copies(at: Here) -> str:
    """What becomes of a token that stands at several places."""
    places, length = at.facts["same"], at.facts["length"]
    if len(places) < 2:
        return f"It stands here once; its vector has length {length:.2f}."
    listed = ", ".join(map(str, places[:6])) + (" …" if len(places) > 6 else "")
    if at.config.positions in ("learned", "sinusoidal"):
        return (
            f"It stands at {listed}, and its position makes each row another one: {at.query} and {at.facts['other']} "
            f"have a cosine of {signed(at.facts['cosine'])}."
        )
    return f"It stands at {listed}: the very same row each time, of length {length:.2f}."


def arrive(at: Here) -> Described:
    """The layers before write into the stream."""
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
        f"Layers build on each other: layer {at.layer} does not read the embedding, it reads what {layers} made of it, "
        f"{'by adding to it' if at.pre else 'by adding to it and normalising the sum'}."
    )
    left = "it has turned well away from where it began"
    if abs(alike - 0.5) > 0.2:
        left = "it still points much as it began" if alike > 0.5 else "little of where it began is left"
    sentence = (
        f"{at.query_token} came in with length {then:.2f} and has {now:.2f} here; the cosine of the two is "
        f"{signed(alike)}: {left}."
    )
    return Described(f"What {layers} made of it", why, formula, code, sentence, {"stream": "x[0]"})


def norm(at: Here) -> Described:
    """The norm brings every vector to one scale."""
    lengths = at.facts["lengths_before"], at.facts["lengths_after"]
    code = f"block = model.blocks[{at.layer}]\n" + norm_code(at.config, "x", "block.attention_norm", "h")
    why = (
        "Vectors grow from layer to layer, some more than others. The norm brings them to one scale, so the weights "
        "that follow get numbers of the size they were trained for."
    )
    ranges = [f"{each.min():.2f} to {each.max():.2f}" for each in lengths]
    factor = [each.max() / max(each.min(), 1e-12) for each in lengths]
    sentence = (
        f"Lengths of the {at.T} vectors: {ranges[0]} before, {ranges[1]} after; the longest was {factor[0]:.1f} times "
        f"the shortest, now it is {factor[1]:.1f} times."
        if at.T > 1
        else f"{at.query_token} has length {lengths[0][0]:.2f} before and {lengths[1][0]:.2f} after."
    )
    formula = f"h = {norm_formula(at.config)}: ({at.T}, {at.d}), each row by itself"
    return Described("Bring every vector to one scale", why, formula, code, sentence, {"stream": "h[0]"})
