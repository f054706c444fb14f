"""Links: a run as a few letters of a URL from which anybody can replay it.

    ?run=1q1YqVrJ…                                          text, settings and the losses they led to

What may be trained is for the limits of the place where a link is opened. All that is wrong with one becomes a
LinkError, a sentence meant to be shown.
"""

from .card import HASH_LETTERS, LINKED, SEEN_ONLY, RunCard, chosen_losses, text_hash
from .letters import LinkError
from .repetition import Repetition, repetition

__all__ = [
    "HASH_LETTERS",
    "LINKED",
    "SEEN_ONLY",
    "LinkError",
    "Repetition",
    "RunCard",
    "chosen_losses",
    "repetition",
    "text_hash",
]
