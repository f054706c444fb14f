"""Synthetic languages with an exactly known next-token distribution, and so a known best possible loss."""

from .exact import ExactModel
from .graph import Graph, Language
from .made import addition, brackets, copy, dialects, stories

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (stories.LANGUAGE, copy.LANGUAGE, brackets.LANGUAGE, addition.LANGUAGE, dialects.LANGUAGE)
}

__all__ = ["LANGUAGES", "ExactModel", "Graph", "Language"]
