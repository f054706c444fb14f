"""Circuits: a small set of heads and MLPs that carries an answer, found by greedy ablation, checked on fresh prompts.

All parts outside the circuit take the values of the other prompt's run (resample ablation; Wang et al. 2023; Conmy et
al. 2023). Edges replace what one part adds to another's input alone (path patching, Goldowsky-Dill et al. 2023).

N = pairs, T = tokens, C = candidate circuits, P = parts of the model, H = heads, D = d_head, d = d_model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ..model import ModelConfig, Pass, Recorder, Tap, Trace, Transformer
from .direct import readout, written_by_head
from .patching import PREDICT_ALIKE, ROWS_AT_ONCE, Pair, predict_alike

KEPT = 0.9
"""Share of the logit difference that a circuit has to keep."""
FEEDS = 0.05
"""A part feeds another if at least this share of the logit difference is lost without the link."""
FEW, HOLDS = 5, 0.5
"""Fresh pairs below which nothing is concluded from them; share that a circuit which holds keeps on each of them."""
MAIN = 0.5
"""Share of the logit difference that is lost without a link of the main path, at least."""


@dataclass(frozen=True, order=True)
class Node:
    """A head, or an MLP (or a layer's experts together), which comes after its layer's heads."""

    layer: int
    head: int | None = None
    """None for the MLP."""


@dataclass(frozen=True)
class Edge:
    """What one part passes on to another, or straight to the logits."""

    sender: Node
    receiver: Node | None
    """None for the logits."""
    share: float
    """Of the logit difference, lost without it."""


@dataclass(frozen=True)
class Circuit:
    """A set of parts that keeps most of the logit difference. All shares but `fresh` are of the first pair alone."""

    lost: dict[Node, float]
    """The parts, in their order → the share of the way to the other answer that the model goes with this part patched.

    The patch is at all tokens; all other parts of the model react to it."""
    edges: tuple[Edge, ...]
    kept: float
    """Share of the logit difference that the circuit keeps."""
    fresh: tuple[float, ...]
    """The same on each fresh pair."""
    parts: int
    """P: how many the model has."""

    @property
    def holds(self) -> bool:
        """Whether it also carries the answers of enough fresh pairs."""
        return len(self.fresh) >= FEW and min(self.fresh) >= HOLDS

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The parts, first layer first."""
        return tuple(self.lost)

    @property
    def drawn(self) -> tuple[Node, ...]:
        """The parts to plot: the most needed, those that cost at least FEEDS, and all that a plotted part feeds."""
        links, drawn = self.links, [*self.most_needed]
        for node in self.lost:
            if self.lost[node] >= FEEDS or any(link.receiver == node and link.sender in drawn for link in links):
                drawn.append(node)
        return tuple(node for node in self.lost if node in drawn)

    @property
    def heads(self) -> tuple[Node, ...]:
        """The heads among the parts that are drawn."""
        return tuple(node for node in self.drawn if node.head is not None)

    @property
    def most_needed(self) -> tuple[Node, ...]:
        """The three parts without which most is lost, largest first, as far as they come to half of the first one."""
        ranked = sorted(self.lost, key=self.lost.__getitem__, reverse=True)[:3]
        return tuple(node for node in ranked if self.lost[node] >= self.lost[ranked[0]] / 2)

    @property
    def main_path(self) -> tuple[Node, ...]:
        """The parts along the strongest links to the logits, first layer first, as far as these reach MAIN."""
        path: tuple[Node, ...] = ()
        while links := [each for each in self.edges if each.receiver == (path or (None,))[0] and each.share >= MAIN]:
            path = (max(links, key=lambda each: each.share).sender, *path)
        return path

    @property
    def links(self) -> tuple[Edge, ...]:
        """The edges that count: all of at least FEEDS, and the strongest one from each part."""
        strongest = {edge.sender: edge for edge in sorted(self.edges, key=lambda edge: edge.share)}
        return tuple(edge for edge in self.edges if edge.share >= FEEDS or edge is strongest[edge.sender])

    def feeding(self, receivers: Sequence[Node]) -> tuple[Node, ...]:
        """The drawn parts that feed one of these."""
        senders = {edge.sender for edge in self.links if edge.receiver in receivers}
        return tuple(node for node in self.drawn if node in senders)


def nodes_of(config: ModelConfig) -> list[Node]:
    """All P parts of a model, in the order in which a token passes them."""
    heads = (*range(config.n_heads), None)
    return [Node(layer, head) for layer in range(config.n_layers) for head in heads]


class Place(NamedTuple):
    """The token on which a head puts most of its weight."""

    key: int
    habit: str | None
    """What the key is to the query, one of `inspection.heads.HABITS` or none of these."""
    weight: float


def places_of(found: Circuit, ids: Sequence[int], pattern: Callable[[int], torch.Tensor]) -> dict[Node, Place]:
    """Where the most needed heads look, at the last token; `pattern` gives a layer's weights (H, T, T)."""
    places, query = {}, len(ids) - 1
    for node in found.most_needed:
        if node.head is not None:
            weight, key = pattern(node.layer)[node.head, query].max(dim=0)
            places[node] = Place(int(key), _habit(ids, query, int(key)), float(weight))
    return places


def _habit(ids: Sequence[int], query: int, key: int) -> str | None:
    """What the token at `key` is to the one at `query`; None for neither of these."""
    names = {
        "itself": key == query,
        "induction": key > 0 and ids[key - 1] == ids[query],
        "duplicate": ids[key] == ids[query],
        "previous": key == query - 1,
        "first": key == 0,
    }
    return next((name for name, fits in names.items() if fits), None)


def passes_of(config: ModelConfig, pairs: int) -> int:
    """How many prompts a search reads at most."""
    P = len(nodes_of(config))
    return pairs * P * (P + 1) // 2


@torch.inference_mode()
def find_circuit(
    model: Transformer, pairs: Sequence[Pair], fresh: Sequence[Pair] = (), *, kept: float = KEPT
) -> Circuit:
    """Take away the part that is needed least, again and again, while the rest keeps `kept` of the logit difference.

    The result is minimal in that no further part can go; another set of the same size may do as well. Raises
    ValueError where there is no pair, or where both prompts of the first one predict almost the same.
    """
    if not pairs:
        raise ValueError("A circuit needs two prompts with different answers")
    own = Runs(model, pairs[:1])
    if predict_alike(float(own.clean), float(own.corrupt)):
        raise ValueError(PREDICT_ALIKE)
    nodes, runs = nodes_of(model.config), Runs(model, pairs)
    circuit = whole = torch.ones(len(nodes), dtype=torch.bool)
    while circuit.any():
        without = _without_each(circuit)
        shares = runs.shares(without)
        best = int(shares.argmax())
        if shares[best] < kept:
            break
        circuit = without[best]
    lost, inside = 1.0 - own.shares(_without_each(whole)), [node for node, stays in zip(nodes, circuit) if stays]
    edges = own.edges(inside) if model.config.norm_placement == "pre" else ()
    again = Runs(model, fresh).each_share(circuit) if fresh else ()
    keeps = float(own.shares(circuit[None]))
    return Circuit(dict(zip(inside, lost[circuit].tolist())), edges, keeps, again, len(nodes))


def _without_each(circuit: torch.Tensor) -> torch.Tensor:
    """Candidates (C, P): the circuit (P,) without each of its parts."""
    left = circuit.nonzero()[:, 0]
    candidates = circuit.repeat(len(left), 1)
    candidates[torch.arange(len(left)), left] = False
    return candidates


class Runs:
    """Both runs of many pairs, all equally long."""

    def __init__(self, model: Transformer, pairs: Sequence[Pair]):
        """Read all prompts once."""
        self.model, device = model, next(model.parameters()).device
        self.ids, other, self.answer, self.foil = (
            torch.tensor([getattr(pair, name) for pair in pairs], device=device)
            for name in ("ids", "other", "answer", "foil")
        )
        self.here, self.there = self._run(self.ids), self._run(other)
        self.clean, self.corrupt = self._difference(self.here["final"]), self._difference(self.there["final"])

    def _run(self, ids: torch.Tensor) -> Trace:
        recorder = Recorder(("resid_pre", "resid_mid", "z", "ff_out", "final", "resid_post"))
        self.model(ids, Pass(tap=recorder))
        return recorder.trace

    def _difference(self, final: torch.Tensor) -> torch.Tensor:
        """The logit differences (C, N), of the last of the final vectors (C · N, any, d)."""
        logits = self.model.head(final[:, -1]).float().unflatten(0, (-1, len(self.ids)))  # (C, N, V)
        row = torch.arange(len(self.ids), device=final.device)
        return logits[:, row, self.answer] - logits[:, row, self.foil]

    def _share(self, differences: torch.Tensor) -> torch.Tensor:
        """Of all pairs together (C,): 0 for the other prompts' differences (C, N), 1 for the pairs' own."""
        return ((differences - self.corrupt).sum(dim=1) / (self.clean - self.corrupt).sum()).cpu()

    def shares(self, circuits: torch.Tensor) -> torch.Tensor:
        """(C,) share of the logit difference that each circuit (C, P) keeps, all other parts resampled."""
        at_once = max(1, ROWS_AT_ONCE // self.ids.numel())
        return torch.cat([self._share(self._kept(some)) for some in circuits.split(at_once)])

    def each_share(self, circuit: torch.Tensor) -> tuple[float, ...]:
        """The share of its logit difference that a circuit (P,) keeps on each pair."""
        return tuple(((self._kept(circuit[None]) - self.corrupt) / (self.clean - self.corrupt))[0].tolist())

    def _kept(self, circuits: torch.Tensor) -> torch.Tensor:
        N, config = len(self.ids), self.model.config
        by_layer = circuits.to(self.ids.device).unflatten(1, (config.n_layers, config.n_heads + 1))
        by_layer = by_layer.repeat_interleave(N, dim=0)  # (C · N, L, H + 1)

        def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
            if name in ("z", "ff_out"):
                there = self.there[name, layer].repeat(len(circuits), *(1,) * (x.ndim - 1))
                keep = by_layer[:, layer, :-1, None] if name == "z" else by_layer[:, layer, -1:]
                return torch.where(keep[:, None], x, there)  # over all tokens
            return x

        return self._last(tap, self.ids.repeat(len(circuits), 1))

    def _last(self, tap: Tap, ids: torch.Tensor) -> torch.Tensor:
        """The logit differences of an edited pass, without logits of other tokens."""
        finals = []

        def stop(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
            if name != "final":
                return tap(name, layer, x)
            finals.append(x)
            return x[:, -1:]

        self.model(ids, Pass(tap=stop))
        return self._difference(finals[0])

    # ---- edges -----------------------------------------------------------------------------------------------------

    def edges(self, nodes: Sequence[Node]) -> tuple[Edge, ...]:
        """What each part passes on to each later one, and straight to the logits; pre-norm models only."""
        changes = {node: self._written(self.there, node) - self._written(self.here, node) for node in nodes}
        found = [Edge(sender, None, self._to_logits(change)) for sender, change in changes.items()]
        at_once = max(1, ROWS_AT_ONCE // self.ids.numel())
        stages = {node: (node.layer, node.head is None) for node in nodes}
        for receiver in nodes:
            before = [node for node in nodes if stages[node] < stages[receiver]]
            for start in range(0, len(before), at_once):
                senders = before[start : start + at_once]
                shares = self._to_part(torch.cat([changes[sender] for sender in senders]), receiver)
                found += [Edge(sender, receiver, share) for sender, share in zip(senders, shares)]
        return tuple(found)

    def _written(self, trace: Trace, node: Node) -> torch.Tensor:
        """What a part adds to the residual stream (N, T, d)."""
        if node.head is None:
            return trace["ff_out", node.layer]
        return written_by_head(self.model, node.layer, trace["z", node.layer])[:, :, node.head]

    def _to_logits(self, change: torch.Tensor) -> float:
        """The share that a change (N, T, d) of the last stream takes away by itself."""
        streams = self.here["resid_post", self.model.config.n_layers - 1][:, -1]
        readers = [readout(self.model, *each) for each in zip(streams, self.answer.tolist(), self.foil.tolist())]
        return float(-(change[:, -1].float() * torch.stack(readers)).sum() / (self.clean - self.corrupt).sum())

    def _to_part(self, changes: torch.Tensor, receiver: Node) -> list[float]:
        """The shares lost where one part alone reads changed streams: C changes, (C · N, T, d)."""
        layer, block, recorder = receiver.layer, self.model.blocks[receiver.layer], Recorder(("z", "ff_out"))
        given, C = Pass(tap=recorder), len(changes) // len(self.ids)
        if receiver.head is None:
            stream = block.feedforward_norm(self.here["resid_mid", layer].repeat(C, 1, 1) + changes)
            block.feedforward(stream, given, layer)
        else:
            stream = block.attention_norm(self.here["resid_pre", layer].repeat(C, 1, 1) + changes)
            T, rotary = stream.shape[1], self.model.config.positions == "rotary"
            tables = (self.model.cosines[:T], self.model.sines[:T]) if rotary else None
            block.attention(stream, tables, given, layer)

        def tap(name: str, at: int | None, x: torch.Tensor) -> torch.Tensor:
            if at != layer or name != ("ff_out" if receiver.head is None else "z"):
                return x
            if receiver.head is None:
                return recorder.trace[name, layer]
            x = x.clone()
            x[:, :, receiver.head] = recorder.trace[name, layer][:, :, receiver.head]
            return x

        return (1.0 - self._share(self._last(tap, self.ids.repeat(C, 1)))).tolist()
