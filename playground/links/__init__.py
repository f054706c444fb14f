"""Links: a run as a few letters of a URL from which anybody can replay it, and a view of a tab in readable words.

    ?run=1q1YqVrJ…                                          text, settings and the losses they led to
    ?tab=inspect&model=stories&prompt=Mia&layer=2&head=0&cell=7,3

The limits of the place where a link is opened decide what may be trained. Anything wrong with a link becomes a
LinkError, a sentence to show.
"""

from .card import HASH_LETTERS, LINKED, SEEN_ONLY, RunCard, chosen_losses, text_hash
from .letters import LinkError
from .view import View

__all__ = [
    "HASH_LETTERS",
    "LINKED",
    "SEEN_ONLY",
    "LinkError",
    "RunCard",
    "View",
    "chosen_losses",
    "text_hash",
]
