"""Experts: how tokens and load are spread over them, and whether the routers sort tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..inspection.balance import Evenness
from ..inspection.favourites import RANDOM_ROUTERS, Sorting
from .numbers import listed
from .result import Result

NAMED = 3
"""Tokens that a headline names, at most."""
BUSIER = 1.5
"""From this many times the busiest expert's share on, a load is visibly less even."""


def repeated_words(tokens: Sequence[int], first: Sequence[int], used: int) -> str:
    """How often a token that comes again goes to the same expert as before; of a text's first choices in one layer."""
    last, same = {}, []
    for token, expert in zip(tokens, first):
        same += [last[token] == expert] if token in last else []
        last[token] = expert
    if not same:
        return "No token occurs twice in this text."
    which = "main expert" if used > 1 else "expert"
    return f"Repeated tokens keep their {which} in {sum(same)} of {len(same)} cases."


def journey_words(token: str, position: int, layers: Sequence[int], experts: np.ndarray, weights: np.ndarray) -> str:
    """A token's main experts, layer by layer."""
    way = ". ".join(
        f"Layer {layer}: expert {row[0]} ({share[0]:.2f} of the weight)"
        for layer, row, share in zip(layers, experts, weights)
    )
    return f"The main experts of token {position} “{token}”. {way}. Framed: the experts it uses."


def load_result(loads: Mapping[bool, Evenness]) -> Result:
    """How evenly a layer's experts are used in a model with balance (True) or without, and what balance did to that."""
    E = round(2 ** next(iter(loads.values())).most)
    equal = f"An equal share is {100 / E:.3g} %."
    if len(loads) == 1:
        ((balanced, load),) = loads.items()
        which = "With balance" if balanced else "Without balance"
        headline = f"{which}, the busiest of {E} experts gets {100 * load.busiest_share:.0f} % of the load."
        pushed = "Balance pushed towards equal shares. Without it, a few experts may do all the work." * balanced
        return Result(headline, f"{equal} {pushed}".strip())
    dead, died = len(loads[True].dead), len(loads[False].dead)
    balanced, unbalanced = 100 * loads[True].busiest_share, 100 * loads[False].busiest_share
    gets = f"{unbalanced:.0f} % of the load without balance, {balanced:.0f} % with it"
    number = f"The busiest expert gets {gets}. {equal}"
    if died != dead:
        rather = f", instead of {dead}" if dead else ""
        waste = "They take memory, but see hardly any tokens."
        return Result(f"Without balance, {died} of {E} experts are almost unused{rather}.", f"{waste} {number}")
    if 1 / BUSIER < unbalanced / balanced < BUSIER:
        learn = " No expert is almost unused." * (not dead)
        return Result("Balance makes little difference here.", f"{number}{learn}")
    return Result(f"Without balance, the load is {'less' if unbalanced > balanced else 'more'} even.", number)


def specialised_result(sorting: Sorting, kind: tuple[int, Sequence[str]] | None, judged: str) -> Result:
    """Whether a layer's experts specialised more than with random routers: an example, and how it was judged.

    `kind`: an expert that takes these tokens, and little else; None if none does. `judged`: the text, in words.
    """
    if not sorting.is_clear:
        headline = "No clear specialisation: random routers sort these tokens just as well."
    elif kind is None:
        headline = "Experts have favourite tokens, but each takes many others too."
    else:
        (expert, tokens), more = kind, len(kind[1]) - NAMED
        named = [f"“{token}”" for token in tokens[:NAMED]] + ([f"{more} more"] if more > 0 else [])
        headline = f"Expert {expert} takes {listed(named)}, and little else."
    how = (
        "Each percentage says how often that token goes to the expert. The list has only tokens that go there clearly "
        "more often than the average token."
    )
    gain = f"{100 * sorting.learned:.1f} percentage points"
    more = f"If you know the token, you guess its expert right {gain} more often than if you don't."
    best = f"The best of {RANDOM_ROUTERS} random routers reaches {100 * sorting.random:.1f}."
    return Result(headline, details=f"{how} {more} {best} We count only each token's main expert, on {judged}.")


def broken_result(plain: float, changed: float, what: str) -> Result:
    """What an edit of the experts does to the loss on a text, named by `what`."""
    before, after = f"{plain:.4f}", f"{changed:.4f}"
    if before == after:
        return Result("The loss stays the same.", f"It is {before} per token of {what}.")
    verb = "rises" if changed > plain else "falls"
    return Result(f"The loss {verb} by {abs(changed - plain):.4f}.", f"From {before} to {after} per token of {what}.")
