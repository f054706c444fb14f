"""The walk: one prompt through one layer, step by step; each step returns the numbers that it computes.

Each function returns the arrays that a picture draws and the facts that a sentence tells. Each step's purpose,
formula and lines of PyTorch are in `words/walk`.

T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..model import ModelConfig
from .look import Look

TOP = 10
"""How many candidates, neurons or watched tokens a step lists."""
ACTIVE = 0.01
"""A neuron responds if its activation is further than this from zero."""

Numbers = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays by name, and facts by name."""


@dataclass(frozen=True, eq=False)
class Selection:
    """One layer, head, query token and key token in a look."""

    look: Look
    layer: int
    head: int
    query: int
    key: int

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.look.config

    @property
    def kv_head(self) -> int:
        """The key/value head that the head reads."""
        return self.look.kv_head(self.head)

    def rows(self, name: str, layer: int | None = None) -> np.ndarray:
        """One intermediate of the prompt in this layer (or the given one), without its batch axis, in float64."""
        return double(self.look.trace[name, self.layer if layer is None else layer][0])

    def projected(self) -> dict[str, np.ndarray]:
        """q (T, H, D), k and v (T, Hkv, D) as the projection makes them: before QK-norm and rotation."""
        with torch.no_grad():
            made = self.look.model.blocks[self.layer].attention.project(self.look.trace["attn_in", self.layer])
        return {name: double(each[0]) for name, each in zip("qkv", made)}


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the walk at one selection."""

    name: str
    at: Selection
    arrays: dict[str, np.ndarray]
    """The arrays that its picture draws; the step's function explains them."""
    facts: dict[str, Any]
    """The numbers, tokens (by place) and heads that a sentence states."""


def step_names(look: Look, layer: int) -> tuple[str, ...]:
    """The steps that this model takes in this layer, in their order."""
    return tuple(name for name in STEPS if name not in _ONLY_WHERE or _ONLY_WHERE[name](look.config, layer))


def step(look: Look, name: str, layer: int, head: int, query: int, key: int) -> Step:
    """One step at this layer, head, query and key."""
    at = Selection(look, layer, head, query, key)
    return Step(name, at, *STEPS[name](at))


def embed(at: Selection) -> Numbers:
    """stream (T, d): each token's row of the table, and its position if one is added; length: of the query's."""
    stream = at.rows("resid_pre", 0)
    return {"stream": stream}, {"length": norm(stream[at.query])}


def arrive(at: Selection) -> Numbers:
    """stream (T, d): what enters the layer, after the layers before it."""
    stream, then = at.rows("resid_pre"), at.rows("resid_pre", 0)[at.query]
    now = stream[at.query]
    return {"stream": stream}, {"embedded_length": norm(then), "length": norm(now), "cosine": cosine(now, then)}


def normalise(at: Selection) -> Numbers:
    """stream (T, d): what attention reads. lengths_before and lengths_after (T,): of all vectors."""
    before, after = at.rows("resid_pre"), at.rows("attn_in")
    return {"stream": after}, {"lengths_before": lengths(before), "lengths_after": lengths(after)}


def project(at: Selection) -> Numbers:
    """x (d,): what attention reads of the query token; q (H·D,), k, v (Hkv·D,): its projections.

    lengths: of q, k and v in this head.
    """
    made = {name: rows[at.query] for name, rows in at.projected().items()}
    head = {"q": at.head, "k": at.kv_head, "v": at.kv_head}
    arrays = {"x": at.rows("attn_in")[at.query], **{name: rows.reshape(-1) for name, rows in made.items()}}
    return arrays, {"lengths": {name: norm(rows[head[name]]) for name, rows in made.items()}}


def split(at: Selection) -> Numbers:
    """q (H, D), k, v (Hkv, D) of the query token, head by head."""
    return {name: rows[at.query] for name, rows in at.projected().items()}, {}


def normalise_queries(at: Selection) -> Numbers:
    """q_before, q_after, k_before, k_after (D,): of the query token in this head; lengths: of these four."""
    made = at.projected()
    q = made["q"][:, at.head], at.rows("q")[:, at.head]
    k = made["k"][:, at.kv_head], at.rows("k")[:, at.kv_head]
    before, after = {"q_before": q[0], "k_before": k[0]}, {"q_after": q[1], "k_after": k[1]}
    arrays = {name: rows[at.query] for name, rows in (before | after).items()}
    return arrays, {"lengths": {name: norm(vector) for name, vector in arrays.items()}}


def rotate(at: Selection) -> Numbers:
    """before, after (D/2, 2): the pairs of this head's query; angles (D/2,) in radians.

    product: rotated query · rotated key; both_later and query_later: the same if both, or only the query, were five
    places later.
    """
    D, query, key = at.config.d_head, at.query, at.key
    unrotated, rotated = at.rows("q")[query, at.head], at.rows("q_rotated")[query, at.head]
    speeds = at.config.rotary_base ** (-np.arange(0, D, 2) / D)  # (D/2,) radians per place
    k = at.rows("k")[key, at.kv_head]

    def product(query_place: int, key_place: int) -> float:
        return float(_rotated(unrotated, query_place * speeds) @ _rotated(k, key_place * speeds))

    angles = query * speeds
    arrays = {"before": unrotated.reshape(2, -1).T, "after": rotated.reshape(2, -1).T, "angles": angles}
    return arrays, {
        "product": product(query, key),
        "both_later": product(query + 5, key + 5),
        "query_later": product(query + 5, key),
    }


def _rotated(vector: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """A head's vector (D,) with pair i, its numbers i and i + D/2, turned by angles[i]."""
    first, second = vector.reshape(2, -1)
    pairs = (first + 1j * second) * np.exp(1j * angles)
    return np.concatenate((pairs.real, pairs.imag))


def share(at: Selection) -> Numbers:
    """k (H, D): the key token's key, as each query head meets it. fellows: heads that share this head's key."""
    look = at.look
    fellows = [h for h in range(at.config.n_heads) if look.kv_head(h) == at.kv_head and h != at.head]
    return {"k": double(look.keys(at.layer))[:, at.key]}, {"fellows": fellows}


def scores(at: Selection) -> Numbers:
    """scores (T, T): of this head, including the hidden ones.

    score: of query and key; best, best_score: the visible key with the highest score.
    """
    row = at.look.scores(at.layer)[at.head, at.query].double()
    visible = row[: at.query + 1] if at.config.causal else row
    best = int(visible.argmax())
    return {"scores": double(at.look.scores(at.layer)[at.head])}, {
        "score": float(row[at.key]),
        "best": best,
        "best_score": float(row[best]),
    }


def mask(at: Selection) -> Numbers:
    """scores (T, T) with −inf where a query may not look.

    later: tokens after the query; weight_on_later: the weight that they get in a model without a mask.
    """
    values, query = double(at.look.scores(at.layer)[at.head]), at.query
    weights = at.look.scores(at.layer)[at.head, query].double().softmax(dim=0)
    facts = {
        "later": len(weights) - 1 - query,
        "weight_on_later": 0.0 if at.config.causal else float(weights[query + 1 :].sum()),
    }
    if at.config.causal:
        values = np.where(np.triu(np.ones(values.shape, dtype=bool), 1), -np.inf, values)
    return {"scores": values}, facts


def softmax(at: Selection) -> Numbers:
    """pattern (T, T), rows sum to 1; best: the token with the most weight."""
    pattern = double(at.look.pattern(at.layer)[at.head])
    return {"pattern": pattern}, {"best": int(pattern[at.query].argmax())}


def mix(at: Selection) -> Numbers:
    """parts (n, D): weight · value of the most watched tokens, the rest in one row; z (D,): their sum.

    watched: the tokens with a row of their own, the largest weight first; others: how many share the last row;
    weights (T,); length: of z.
    """
    row = double(at.look.pattern(at.layer)[at.head, at.query])
    parts = row[:, None] * double(at.look.values(at.layer)[at.head])  # (T, D)
    watched = [int(place) for place in np.argsort(-row, kind="stable")[:TOP] if row[place] > 0]
    others = int((row > 0).sum()) - len(watched)
    shown = [parts[place] for place in watched]
    if others:
        shown.append(parts.sum(axis=0) - sum(shown))
    z = at.rows("z")[at.query, at.head]
    facts = {"watched": watched, "others": others, "weights": row, "length": norm(z)}
    return {"parts": np.stack(shown), "z": z}, facts


def project_back(at: Selection) -> Numbers:
    """written (H, d): what each head adds to the query token; out (d,): their sum plus the bias.

    lengths (H,): of each head's part in `written`.
    """
    z, out = at.rows("z")[at.query], at.rows("attn_out")[at.query]
    weight = double(at.look.model.blocks[at.layer].attention.out.weight)  # (d, H·D)
    written = np.einsum("dhk,hk->hd", weight.reshape(len(weight), *z.shape), z)
    return {"written": written, "out": out}, {"lengths": lengths(written)}


def add(at: Selection) -> Numbers:
    """delta, cosine (T,): how far the sublayer moves a token, and the cosine; most (T,): its most watched token."""
    before, after = at.rows("resid_pre"), at.rows("resid_mid")
    cosines = np.array([cosine(b, a) for b, a in zip(before, after)])
    most = double(at.look.pattern(at.layer)[at.head]).argmax(axis=1)
    return {"delta": lengths(after - before), "cosine": cosines, "most": most}, {}


def mlp(at: Selection) -> Numbers:
    """values (n,): the strongest neurons of the query token, or the probability of every expert.

    neurons: which they are; active: how many are beyond ±0.01; or experts and weights: where the token is routed;
    added, length: lengths of what is added and of the stream; share: of the model's parameters that are in such layers.
    """
    config, query = at.config, at.query
    facts = {"added": norm(at.rows("ff_out")[query]), "length": norm(at.rows("resid_mid")[query])}
    if config.has_experts(at.layer):
        experts = at.look.trace["experts", at.layer][0, query].tolist()
        arrays = {"values": at.rows("router_probabilities")[query]}
        return arrays, {**facts, "experts": experts, "weights": at.rows("expert_weights")[query].tolist()}
    hidden = at.rows("ff_hidden")[query]
    neurons = np.argsort(-np.abs(hidden), kind="stable")[: 2 * TOP]
    return {"values": hidden[neurons]}, {
        **facts,
        "neurons": neurons.tolist(),
        "active": int((np.abs(hidden) > ACTIVE).sum()),
        "share": config.parameters_by_component()["feed-forward"] / config.n_parameters,
    }


def predict(at: Selection) -> Numbers:
    """probabilities, logits (n,) of the best candidates after the query token; tokens (n,): their ids.

    next_token: the token that really follows (None after the last), with next_probability, next_rank (from 1) and
    next_loss in nats.
    """
    logits = at.look.trace["logits"][0, at.query].double()
    probabilities = logits.softmax(dim=-1)
    best = probabilities.topk(min(TOP, at.config.vocab_size)).indices
    numbers = {"probabilities": probabilities[best], "logits": logits[best]}
    arrays = {**{name: double(each) for name, each in numbers.items()}, "tokens": best.cpu().numpy()}
    if at.query + 1 >= at.look.length:
        return arrays, {"next_token": None}
    token = at.look.ids[at.query + 1]
    return arrays, {
        "next_token": token,
        "next_probability": float(probabilities[token]),
        "next_rank": int((logits > logits[token]).sum()) + 1,
        "next_loss": -float(probabilities[token].log()),
    }


STEPS: dict[str, Callable[[Selection], Numbers]] = {
    "embed": embed,
    "arrive": arrive,
    "norm": normalise,
    "project": project,
    "split": split,
    "qk_norm": normalise_queries,
    "rotate": rotate,
    "share": share,
    "scores": scores,
    "mask": mask,
    "softmax": softmax,
    "mix": mix,
    "output": project_back,
    "add": add,
    "mlp": mlp,
    "predict": predict,
}
"""Every step in its order."""

_ONLY_WHERE: dict[str, Callable[[ModelConfig, int], bool]] = {
    "arrive": lambda config, layer: layer > 0,
    "norm": lambda config, layer: config.norm_placement == "pre",
    "qk_norm": lambda config, layer: config.qk_norm,
    "rotate": lambda config, layer: config.positions == "rotary",
    "share": lambda config, layer: config.kv_heads < config.n_heads,
}


def double(tensor: torch.Tensor) -> np.ndarray:
    """A tensor in float64."""
    return tensor.detach().cpu().double().numpy()


def norm(vector: np.ndarray) -> float:
    """Length of a vector."""
    return float(np.linalg.norm(vector))


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Lengths (n,) of vectors (n, d)."""
    return np.linalg.norm(vectors, axis=1)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of the angle between two vectors: 1 same direction, 0 perpendicular, −1 opposite."""
    return float(a @ b / max(norm(a) * norm(b), 1e-12))
