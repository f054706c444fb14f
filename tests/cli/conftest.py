"""Runs of these tests that learn the same text share it and its ladder, as the page's do."""

from collections.abc import Iterator
from functools import lru_cache

import pytest

from playground.cli import plan


@pytest.fixture(scope="package", autouse=True)
def drawn_once() -> Iterator[None]:
    """A language's text is drawn once a seed and unit, which is most of what a run of ten steps takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "corpus_from_language", lru_cache(maxsize=8)(plan.corpus_from_language))
        yield
