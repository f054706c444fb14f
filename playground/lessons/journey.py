"""Facts of one token's journey through a model: where it looks, and which token comes next."""

from __future__ import annotations

from ..inspection import Look


def favourite(look: Look) -> tuple[str, float]:
    """(label, percent) of the likeliest token after the prompt."""
    probabilities = look.trace["logits"][0, -1].double().softmax(-1)
    return look.token_label(int(probabilities.argmax())), 100 * float(probabilities.max())


def attends_most(look: Look, layer: int, head: int, query: int, _key: int) -> str:
    """Where the query's largest weight lies: `itself`, the `previous` token, or an `earlier` one."""
    back = query - int(look.pattern(layer)[head, query].argmax())
    return "itself" if back == 0 else "previous" if back == 1 else "earlier"
