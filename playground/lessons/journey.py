"""Facts of one token's journey through a model: what MLPs and layers do to the next one."""

from __future__ import annotations

import torch

from ..inspection import Look
from ..inspection.cost import Effect, effect
from ..inspection.edits import SwitchOff, edits_tap
from ..inspection.lens import logit_lens
from ..kept import Kept
from ..words.numbers import percent

_without = Kept(entries=64, megabytes=8)


def favourite(look: Look) -> tuple[str, float]:
    """(label, percent) of the likeliest token after the prompt."""
    before = _without_mlps(look).before
    return look.token_label(int(before.argmax())), 100 * float(before.max())


def mlp_keeps(look: Look) -> float:
    """Percent of its probability that the favourite keeps without any MLP; more than 100 if it gains."""
    before, after = _favourites_share(look)
    return 100 * after / before


def mlp_change(look: Look) -> str:
    """The favourite's probability with all MLPs, then with none: `31 % → 8 %`."""
    return " → ".join(percent(each, 0) for each in _favourites_share(look))


def settles(look: Look) -> int:
    """After how many layers the favourite leads in the logit lens and stays ahead; 0 for the embedding."""
    best = logit_lens(look.model, look.trace, torch.zeros(look.length, dtype=torch.long)).best[:, -1].tolist()
    wrong = [stage for stage, token in enumerate(best) if token != best[-1]]
    return wrong[-1] + 1 if wrong else 0


def _favourites_share(look: Look) -> tuple[float, float]:
    """The favourite's probability with all MLPs, and with none."""
    found = _without_mlps(look)
    best = int(found.before.argmax())
    return float(found.before[best]), float(found.after[best])


def _without_mlps(look: Look) -> Effect:
    edits = [SwitchOff(layer, "feed-forward") for layer in range(look.config.n_layers)]
    ids = torch.tensor([look.ids])
    return _without.get(
        tuple(look.ids), lambda: effect(look.model, ids, edits_tap(edits, look.config)), owner=look.model
    )
