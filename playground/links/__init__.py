"""Links: a run as a few letters of a URL, `?run=1q1YqVrJ…`, from which anybody can replay it: text, settings, losses.

The limits of the place where a link is opened decide what may be trained. Anything wrong with a link becomes a
LinkError, a sentence to show.
"""

from .card import HASH_LETTERS, LINKED, SEEN_ONLY, RunCard, chosen_losses, text_hash
from .letters import LinkError

__all__ = ["HASH_LETTERS", "LINKED", "SEEN_ONLY", "LinkError", "RunCard", "chosen_losses", "text_hash"]
