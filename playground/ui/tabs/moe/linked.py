"""Linked pairs: a link to a comparison sets its form up, and says what its maker's pairs came to.

Settings are kept as differences from what the form opens with for that text, and are read as the form's own are: a link
can ask for nothing that the form could not.
"""

from __future__ import annotations

import html
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

from .... import links
from ....devices import machine_kind
from ....links import LinkError
from ....links.letters import cut, packed, unpacked
from ....processes import threads_used
from ....service.comparisons import ComparisonSpec
from ....service.limits import Limits
from ....service.runs import HUB_FILE, OWN_TEXT, Source
from ....service.views import PairView
from ...forms import pair as form
from ...forms import texts

_SETTINGS = ("equal", *(field.name for field in form.FIELDS))


@dataclass(frozen=True)
class PairCard:
    """A comparison as its form holds it, and what it came to."""

    values: dict[str, Any]
    """Of the form, by name, the text's among them."""
    text_hash: str = ""
    """Of an own text, which stands in no link."""
    losses: tuple[float, ...] = ()
    """Mean validation loss of the dense models and of the mixtures at their ends; empty where it was stopped."""
    machine: str = ""

    def to_letters(self) -> str:
        """What stands after `?pair=`. Raises LinkError where that would be too long."""
        kind, *hub = self._text
        usual = _usual(kind)
        record = {
            "pair": [kind, *hub],
            "set": {name: self.values[name] for name in _SETTINGS if self.values[name] != usual[name]},
            "print": _print(self.values),
            "hash": self.text_hash,
            "losses": [round(1e4 * loss) for loss in self.losses],
            "machine": self.machine,
        }
        kept = {name: value for name, value in record.items() if value or name == "print"}
        return packed(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode())

    @classmethod
    def from_letters(cls, letters: str) -> PairCard:
        """The inverse of `to_letters`, whoever wrote them. Raises LinkError."""
        record = unpacked(letters)
        try:
            kind, *hub = record["pair"]
            changed, losses = record.get("set", {}), tuple(record.get("losses", ()))
            values = _usual(kind) | changed
            words = (*hub, record.get("hash", ""), record.get("machine", ""))
            sane = all(isinstance(word, str) and word.isprintable() and len(word) <= 200 for word in words)
            sane = sane and len(hub) == (3 if kind == HUB_FILE else 0) and len(losses) in (0, 2)
            if not sane or set(changed) - set(_SETTINGS) or any(type(loss) is not int for loss in losses):
                raise LinkError("what it holds is not a comparison")
            if record["print"] != _print(values):
                raise LinkError("what the form opens with has changed since it was made")
        except (TypeError, KeyError, ValueError, AttributeError) as problem:
            raise problem if isinstance(problem, LinkError) else LinkError(
                "what it holds is not a comparison"
            ) from problem  # fmt: skip
        repo, filename, repo_type = hub or ("", "", "dataset")
        text = texts.values_of(Source(kind, repo=repo, filename=filename, repo_type=repo_type))
        ended = tuple(loss / 1e4 for loss in losses)
        return cls(values | text, record.get("hash", ""), ended, record.get("machine", ""))

    @property
    def _text(self) -> tuple[str, ...]:
        given = self.values
        if given["source"] == OWN_TEXT and given["own_kind"] == "hub":
            return HUB_FILE, given["hub_repo"], given["hub_file"], given["hub_type"]
        return (given["source"],)

    def check(self, limits: Limits) -> None:
        """Raise ValueError where this place could not train it."""
        spec = form.comparison_spec(self.values, Source(self._text[0]), limits)
        matched = spec.matched()
        for config in (matched.dense, matched.moe):
            limits.check_training(config, spec.training)

    def in_words(self) -> str:
        """What the link has set and what there is to do, as HTML. Everything is escaped."""
        kind, *hub = self._text
        text = {OWN_TEXT: "a text of its maker", HUB_FILE: "a file of the Hub"}.get(kind) or texts.SOURCES[kind]
        given, usual = self.values, _usual(kind)
        parts = [f"Set up from a link: {text}, {_seeds(given['seed'], given['seeds'])}."]
        differs = [
            f"{field.label} {field.shown(usual[field.name])} → {field.shown(given[field.name])}"
            for field in form.FIELDS
            if given[field.name] != usual[field.name] and field.name not in ("seed", "seeds")
        ]
        if given["equal"] != usual["equal"]:
            titles = {value: title for title, value in form.EQUAL_CHOICES}
            differs.append(f"equal {titles[given['equal']]} instead of {titles[usual['equal']]}")
        if differs:
            parts.append(f"It differs from what the form opens with in {'; '.join(differs)}.")
        if self.losses:
            dense, moe = self.losses
            mean = "means over its seeds" if given["seeds"] > 1 else "one seed"
            where = f" on {self.machine}" if self.machine else ""
            parts.append(f"Its maker's pair ended at {dense:.4f} (dense) and {moe:.4f} (mixture), {mean}{where}.")
        if kind == OWN_TEXT:
            parts.append(f"A link holds no texts: paste the same one below (its hash is {self.text_hash}).")
        elif hub:
            parts.append(f"It learns from {hub[1]} of {hub[0]} ({hub[2]}).")
        parts.append("Press Train both to repeat it.")
        return f'<p class="notice" role="status">{html.escape(" ".join(parts))}</p>'


def pair_letters(view: PairView, spec: ComparisonSpec | None) -> str:
    """The letters of a link to this comparison; empty where there is none that others could repeat."""
    if spec is None or view.state not in ("finished", "training", "stopping"):
        return ""
    ends = [[history.val_loss for history in side.histories] for side in view.sides.values()]
    known = view.state == "finished" and not view.withheld and [len(losses) for losses in ends] == [spec.seeds] * 2
    known = known and all(loss is not None and loss < 9e4 for losses in ends for loss in losses)
    device, _, precision = view.device.partition(", ")
    machine = machine_kind(device, precision, threads_used(spec.dense.numbers_in_step(spec.training.batch_size)))
    card = PairCard(
        form.values_of(spec),
        links.text_hash(spec.source.text) if spec.source.text else "",
        tuple(math.fsum(losses) / len(losses) for losses in ends) if known else (),
        machine if known else "",
    )
    try:
        return card.to_letters()
    except LinkError:
        return ""


def _usual(kind: Any) -> dict[str, Any]:
    """What the form opens with for a text."""
    if kind not in (*texts.SOURCES, HUB_FILE):
        raise LinkError(f"it names a text that this page does not have: {cut(kind)}")
    return form.first_values(OWN_TEXT if kind == HUB_FILE else kind) | {"equal": "active"}


def _print(values: dict[str, Any]) -> int:
    """Changes if what the form opens with does, so that an old link does not quietly come to mean something else."""
    said = {name: values[name] for name in _SETTINGS}
    regular = {n: int(v) if isinstance(v, float) and v.is_integer() else v for n, v in said.items()}
    return zlib.crc32(json.dumps(regular, sort_keys=True).encode()) & 0xFFFFFF


def _seeds(first: int, count: int) -> str:
    return f"seeds {first} to {first + count - 1}" if count > 1 else f"seed {first}"
