"""Runs of these tests learn short texts of the languages, and those that learn the same share it and its ladder."""

from collections.abc import Iterator
from functools import lru_cache, partial

import pytest

from playground.cli import plan


@pytest.fixture(scope="package", autouse=True)
def drawn_once() -> Iterator[None]:
    """A language's text is short, and drawn once a seed and unit: it is most of what a run of ten steps takes."""
    short = partial(plan.corpus_from_language, n_characters=40_000, n_validation=6_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "corpus_from_language", lru_cache(maxsize=8)(short))
        yield
