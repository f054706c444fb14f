"""Written: a finished text under the name of the model that wrote it, as plain values that the browser keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ....data import Tokenizer
from ....engine import PRECISIONS, SamplingConfig, Spelling
from ....service.limits import Limits
from ....storage import Checkpoint


@dataclass
class Written:
    """All that is needed to show a text again and to open any of its choices."""

    model_id: str
    name: str
    """What the model is called."""
    prompt: list[int]
    samples: list[list[int]]
    probabilities: list[list[float]]
    """The model's own, of each token of each sample."""
    sampling: SamplingConfig
    step: int
    """Of the model's training, when it wrote this."""
    precision: str = "fp32"
    """In which its weights were read."""
    starts: list[int] = field(default_factory=lambda: [0])
    """How many new tokens there were at each press: 0 at first, and where the visitor chose a token, all up to it."""

    @property
    def kept(self) -> int:
        """How many tokens of a text that goes on were there before; the visitor chose the last of them."""
        return self.starts[-1]

    def starts_up_to(self, kept: int) -> list[int]:
        """The `starts` of a text that keeps so many tokens of this one, the last of them chosen by the visitor."""
        return [*(start for start in self.starts if start < kept), kept]

    @property
    def by(self) -> str:
        """Who wrote it, and how."""
        rules, name = self.sampling, self.name if self.precision == "fp32" else f"{self.name} in {self.precision}"
        since = f", from token {self.kept + 1:,} on" if self.kept else ""
        if rules.greedy or not rules.temperature:
            penalty = "" if rules.repetition_penalty == 1 else f", repetition penalty {rules.repetition_penalty:g}"
            return f"Written by {name}, greedily{penalty}{since}."
        neutral = SamplingConfig(seed=rules.seed, temperature=rules.temperature)
        names = {name: name.replace("top_", "top-").replace("min_", "min-").replace("_", " ") for name in vars(rules)}
        said = ["seed", "temperature", *(name for name in names if getattr(rules, name) != getattr(neutral, name))]
        values = ((names[name], getattr(rules, name)) for name in said)
        shown = ", ".join(f"{name} {value if isinstance(value, int) else f'{value:g}'}" for name, value in values)
        return f"Written by {name}: {shown}{since}."

    def pieces(self, tokenizer: Tokenizer) -> list[list[str]]:
        """The text of every token."""
        spelled = []
        for sample in self.samples:
            spelling, last = Spelling(tokenizer, self.prompt), len(sample) - 1
            spelled.append([spelling.add(token, last=i == last) for i, token in enumerate(sample)])
        return spelled

    def head(self, tokenizer: Tokenizer) -> dict[str, Any]:
        """What stands above the text, and before it."""
        given = tokenizer.decode(self.prompt)
        return {"model": self.model_id, "step": self.step, "by": self.by, "given": given}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"sampling": self.sampling.to_dict()}

    @classmethod
    def from_dict(cls, values: Any, limits: Limits, checkpoint: Checkpoint | None = None) -> Written:
        """From what the page sent back, which anybody may have written. Raises ValueError."""
        try:
            written = cls(
                str(values["model_id"]),
                str(values["name"])[:200],
                [int(t) for t in values["prompt"]],
                [[int(t) for t in sample] for sample in values["samples"]],
                [[float(p) for p in sample] for sample in values["probabilities"]],
                SamplingConfig(**values["sampling"]),
                int(values["step"]),
                str(values.get("precision", "fp32")),
                [int(n) for n in values["starts"]],
            )
        except (KeyError, TypeError, ValueError, OverflowError) as problem:
            raise ValueError("There is no text to open yet: press Generate first") from problem
        lengths = [len(s) for s in written.samples]
        if len(lengths) > limits.samples or any(n > limits.new_tokens * 4 for n in lengths):
            raise ValueError("This text is longer than anything written here: press Generate again")
        if len(written.prompt) > limits.prompt or not written.prompt:
            raise ValueError("The prompt of this text cannot be read: press Generate again")
        if [len(p) for p in written.probabilities] != lengths:
            raise ValueError("This text's record is damaged: press Generate again")
        if not all(0 <= p <= 1 for sample in written.probabilities for p in sample):
            raise ValueError("This text's record is damaged: press Generate again")
        starts = [0, *sorted({start for start in written.starts if start > 0})]
        if written.precision not in PRECISIONS or written.starts != starts or starts[-1] > max(lengths, default=0):
            raise ValueError("This text's record is damaged: press Generate again")
        if checkpoint is not None:
            if written.step != (now := checkpoint.history.last_step):
                raise ValueError(
                    f"{written.name} wrote this after {written.step:,} steps, and has the weights of step {now:,} now: "
                    "press Generate again"
                )
            known = range(checkpoint.config.vocab_size)
            if any(t not in known for ids in (written.prompt, *written.samples) for t in ids):
                raise ValueError("This text was written by another model: press Generate again")
        return written
