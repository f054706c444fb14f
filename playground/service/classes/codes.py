"""What people type to enter a class: codes of four words, secrets stored only as hashes, names, and wrong guesses."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import unicodedata
from collections.abc import Callable

from ...kept import Latest
from ..limits import STUDENT_NAME, WRONG_CODES, WRONG_SECONDS

WORDS = re.findall(
    r"\w+",
    """
acorn alarm album almond amber anchor angle ankle apple apron arrow atlas attic autumn badge bagel baker bamboo banana
banjo barrel basil basket beach beaver bell berry bicycle birch blanket boat bonfire book boot bottle branch bread
breeze brick bridge bronze brush bucket buffalo bulb button cabin cactus camel canal candle canoe canvas carbon carpet
carrot castle cedar cello chalk cherry chest circle clay cliff clock cloud clover coast cobalt cocoa comet compass
copper coral corner cotton crane crayon cricket crown crystal cube curtain daisy desert diamond dinner dolphin donkey
dragon drum eagle easel echo elbow ember engine fabric falcon farmer feather fern ferry fiddle field finch flame
flute forest fossil fountain fox garden garlic gate giant ginger glacier globe glove goat gravel guitar hammer harbour
harvest hazel helmet heron hill honey horizon hotel igloo island ivory jacket jaguar jasmine jelly jewel jigsaw jungle
kayak kettle kite kitten ladder lagoon lamp lantern laurel lemon leopard letter lily linen lion lizard lobster lotus
magnet mango maple marble market meadow melon meteor mirror mitten monkey moon mosaic motor mountain muffin museum
napkin nectar needle nickel noodle north nutmeg oasis ocean olive onion opal orange orchid otter owl oyster paddle
palace panda paper parrot pasta peach peanut pearl pebble pelican pencil pepper piano picnic pigeon pillow pilot pine
planet plum pocket pony poppy potato prairie puzzle quartz quilt rabbit radio radish raft rain raven ribbon river
robin rocket rope rose ruby saddle sailor salmon sand satin school seal shadow shell silver sketch sloth snail snow
sparrow spider spiral spoon spring squid stable star stone storm straw summer sunset swan table teapot temple tennis
thread thunder tiger timber toast tomato tower train tulip tunnel turtle umbrella valley vanilla velvet village violin
wagon walnut walrus water whale wheat willow window winter wizard yellow yogurt zebra zipper
""",
)

_FORGOTTEN = 10_000
"""Most addresses whose wrong guesses are remembered."""


class ClassError(ValueError):
    """What is wrong with a request to a class, as a sentence to show."""


def new_code() -> str:
    """A code of four words, as written in a link."""
    return "-".join(secrets.choice(WORDS) for _ in range(4))


def regular(code: object) -> str:
    """A typed code, in the form in which codes are stored; empty if it is not text."""
    return "-".join(re.findall(r"[a-z]+", code.lower())) if isinstance(code, str) and len(code) < 200 else ""


def new_secret() -> str:
    """A new secret for the teacher's link."""
    return secrets.token_urlsafe(24)


def hashed(secret: object) -> bytes:
    """SHA-256 of a secret or of a visitor's id, for storage. Neither can be guessed, so a plain hash is safe."""
    return hashlib.sha256(str(secret).encode("utf-8", errors="surrogatepass")).digest()


def same_secret(secret: object, kept: bytes) -> bool:
    """Whether this secret has the stored hash, compared in constant time."""
    return hmac.compare_digest(hashed(secret), kept)


def one_line(text: object, most: int) -> str:
    """Typed text as one line of at most this many characters, without invisible ones."""
    text = unicodedata.normalize("NFC", text[: 10 * most]) if isinstance(text, str) else ""
    # joiners hold emoji together
    kept = "".join(c if c == "\u200d" or not unicodedata.category(c).startswith(("C", "Z")) else " " for c in text)
    return " ".join(kept.split()).strip("\u200d ")[:most].rstrip()


def short_line(text: object, most: int, what: str) -> str:
    """Typed text as one line. Raises ClassError if it has more than this many characters."""
    line = one_line(text, most + 1)
    if len(line) > most:
        raise ClassError(f"A {what} has at most {most} characters: choose a shorter one.")
    return line


def alphabets(name: str) -> set[str]:
    """Which of the alphabets with similar letters a name uses."""
    return {unicodedata.name(c, "").partition(" ")[0] for c in name if c.isalpha()} & {"LATIN", "CYRILLIC", "GREEK"}


def free_name(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken."""
    number, found = 1, name
    while found.casefold() in taken:
        number += 1
        found = f"{name[: STUDENT_NAME - 6]} ({number})"
    return found


class WrongCodes:
    """Wrong codes and teacher's links that came recently from each address. One address does not affect the others."""

    def __init__(self, clock: Callable[[], float]):
        self.clock, self._lock = clock, threading.Lock()
        self._at = Latest(_FORGOTTEN)  # address → when

    def count(self, address: str) -> None:
        """Count one more from this address. Raises ClassError if it has sent too many."""
        with self._lock:
            recent = [at for at in self._at.get(address, ()) if at > self.clock() - WRONG_SECONDS]
            if len(recent) >= WRONG_CODES:
                minutes = max(round((recent[0] + WRONG_SECONDS - self.clock()) / 60), 1)
                when = f"{minutes} minute{'s' * (minutes > 1)}"
                raise ClassError(f"Too many wrong codes came from your network: try again in {when}.")
            self._at[address] = [*recent, self.clock()]
