"""Synthetic languages with an exactly known next-token distribution, and so a known best possible loss."""

from .exact import ExactModel
from .graph import Graph, Language
from .made import addition, brackets, copy, dialects, phonebook, stories

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (made.LANGUAGE for made in (stories, copy, brackets, addition, phonebook, dialects))
}

__all__ = ["LANGUAGES", "ExactModel", "Graph", "Language"]
