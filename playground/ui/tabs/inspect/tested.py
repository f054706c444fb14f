"""Tested: what every head of a model does over many texts, worked out once for all who ask."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ....data.baselines import IGNORE
from ....engine import SamplingConfig, generate
from ....inspection import Look
from ....inspection.cost import PartCosts, removal_map
from ....inspection.roles import TEXT_TOKENS, TEXTS, HeadTests, flops_of_tests, head_tests
from ....kept import Kept
from ....service.limits import HEAD_TESTS_FLOPS
from ...page import Page
from .validation import TOKENS, Judged, held_out


@dataclass(frozen=True, eq=False)
class Tested:
    """The tests, and the texts they were made on, in words."""

    tests: HeadTests
    words: str


_kept = Kept(entries=128, megabytes=16)
_surveys = Kept(entries=64, megabytes=16)


def roles_of(page: Page, look: Look) -> Tested:
    """The tests of all heads of this model. Takes seconds the first time.

    Raises ValueError for a model too large or a context too short for them.
    """
    if "example" in look.checkpoint.about:
        raise ValueError("This example was written by hand for one prompt: its heads are shown on that prompt alone")
    if flops_of_tests(look.config, TEXT_TOKENS) > HEAD_TESTS_FLOPS:
        raise ValueError(
            f"With {look.config.n_parameters:,} parameters this model is too large to test its heads here: what you "
            "see is this prompt alone"
        )

    def test() -> Tested:
        judged = judged_by(page, look)
        texts, words = texts_of(look, judged)
        worth = survey_of(look, judged)[0] if judged else None  # one number for a head, wherever it is shown
        training = look.checkpoint.training
        return Tested(head_tests(look.model, texts, worth, seed=training.seed if training else 0), words)

    return _kept.get("tests", test, owner=look.model)


def known(look: Look) -> Tested | None:
    """What `roles_of` returns, if it has been computed already."""
    return _kept.peek("tests", owner=look.model)


def judged_by(page: Page, look: Look, tokens: int = TOKENS) -> Judged | None:
    """About so many tokens of the model's validation text, if anybody knows it still."""
    try:
        judged = held_out(page, look, tokens)
    except ValueError:
        return None
    return None if judged.stand_in else judged


def texts_of(look: Look, judged: Judged | None) -> tuple[torch.Tensor, str]:
    """Windows (N, T) of text like the training text, or of the model's own writing; and which of the two, in words."""
    if judged is None:
        return _written(look), "text that the model wrote itself, since its training text is not available"
    lengths = (judged.targets != IGNORE).sum(dim=1)
    T = int(lengths.median())  # separate short texts are padded
    return judged.inputs[lengths >= T, :T], judged.words


def survey_of(look: Look, judged: Judged) -> tuple[PartCosts, str]:
    """What every part of the model is worth, and on which text."""

    def survey() -> tuple[PartCosts, str]:
        return removal_map(look.model, judged.inputs, judged.targets), judged.words

    return _surveys.get(look.ids if judged.stand_in else None, survey, owner=look.model)


def _written(look: Look) -> torch.Tensor:
    """Texts (N, T) that begin with the prompt's first token."""
    more = min(TEXT_TOKENS, look.config.context_length) - 1
    steps = generate(look.model, look.ids[:1], more, SamplingConfig(seed=1), n_samples=TEXTS)
    columns = [torch.full((TEXTS,), look.ids[0]), *(torch.tensor(step.tokens) for step in steps)]
    return torch.stack(columns, dim=1)
