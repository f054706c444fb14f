"""Facts of one token's journey through a model: where it looks, what an MLP does, which layer settles the next one."""

from __future__ import annotations

import torch

from ..inspection import Look
from ..inspection.lens import logit_lens
from ..inspection.walk import step


def favourite(look: Look) -> tuple[str, float]:
    """(label, percent) of the likeliest token after the prompt."""
    probabilities = look.trace["logits"][0, -1].double().softmax(-1)
    return look.token_label(int(probabilities.argmax())), 100 * float(probabilities.max())


def attends_most(look: Look, layer: int, head: int, query: int, _key: int) -> str:
    """Where the query's largest weight lies: `itself`, the `previous` token, or an `earlier` one."""
    back = query - int(look.pattern(layer)[head, query].argmax())
    return "itself" if back == 0 else "previous" if back == 1 else "earlier"


def active_neurons(look: Look, layer: int, head: int, query: int, key: int) -> float:
    """Percent of a layer's MLP that is active for the query. Raises ValueError if the layer has experts instead."""
    if look.config.has_experts(layer):
        raise ValueError("This layer has experts. Choose a dense model")
    return 100 * step(look, "mlp", layer, head, query, key).facts["active"] / look.config.ff_width


def settles(look: Look) -> int:
    """After how many layers the favourite leads in the logit lens and stays ahead; 0 for the embedding."""
    best = logit_lens(look.model, look.trace, torch.zeros(look.length, dtype=torch.long)).best[:, -1].tolist()
    wrong = [stage for stage, token in enumerate(best) if token != best[-1]]
    return wrong[-1] + 1 if wrong else 0
