"""stories: who has what where, with pronouns and things that change hands. The text reads like very small stories."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

from ..graph import CHANCE, Choice, Graph, Language, Mark

SHE = ("Mia", "Ana", "Lily", "Zoe")
HE = ("Tom", "Ben", "Max", "Sam")
PEOPLE = SHE + HE
THINGS = {
    "kite": "a red kite",
    "drum": "an old drum",
    "boat": "a toy boat",
    "apple": "an apple",
    "hat": "a green hat",
    "lamp": "a little lamp",
    "book": "a big book",
    "ball": "a blue ball",
}
PLACES = ("by the sea", "in a village", "near the forest", "on a hill", "in a small town", "at the old mill")
MEETING = {
    "by the sea": "to the sea",
    "in a village": "to the village",
    "near the forest": "out of the forest",
    "on a hill": "up the hill",
    "in a small town": "to the town",
    "at the old mill": "to the mill",
}
HIDEOUTS = ("under a tree", "behind a wall", "in the grass")


def he(person: str) -> str:
    return "she" if person in SHE else "he"


def him(person: str) -> str:
    return "her" if person in SHE else "him"


def choices(state: Hashable) -> Iterator[Choice]:
    """The sentences that may come next. A state holds only the facts that later sentences need."""
    scene, *memory = state
    if scene == "start":
        for hero in PEOPLE:
            for place in PLACES:
                yield 2, f"{hero} lived {place}. ", ("home", hero, place)
                yield 1, f"Once, {hero} lived {place}. ", ("home", hero, place)
    elif scene == "home":
        hero, place = memory
        for thing, described in THINGS.items():
            yield 3, f"{he(hero).capitalize()} had {described}. ", ("has", hero, place, thing)
            yield 1, f"One day {he(hero)} found {described}. ", ("has", hero, place, thing)
    elif scene == "has":
        hero, place, thing = memory
        for friend in PEOPLE:
            if friend != hero:
                yield 2, f"Then {friend} came {MEETING[place]}. ", ("met", hero, friend, thing)
                yield 1, f"In the morning {friend} came {MEETING[place]}. ", ("met", hero, friend, thing)
    elif scene == "met":
        hero, friend, thing = memory
        yield 3, f"{he(friend).capitalize()} liked the {thing}. ", ("wish", hero, friend, thing)
        yield 2, f"{he(friend).capitalize()} wanted to have the {thing}. ", ("wish", hero, friend, thing)
        yield 1, f'{friend} asked, "May I have the {thing}?" ', ("wish", hero, friend, thing)
    elif scene == "wish":
        hero, friend, thing = memory
        yield 4, f"So {hero} gave it to {him(friend)}. ", ("end", friend, hero, thing)
        yield 2, f"But {hero} said no. ", ("no", hero, friend, thing)
        yield 3, f"They played with the {thing} all day. ", ("play", hero, friend, thing)
    elif scene == "no":
        hero, friend, thing = memory
        yield 2, f"{friend} was sad. ", ("sorry", hero, friend, thing)
        yield 1, f"{friend} went away. ", ("end", hero, None, thing)
    elif scene == "sorry":
        hero, friend, thing = memory
        yield 1, f"Then {hero} was sorry and gave it to {him(friend)}. ", ("end", friend, hero, thing)
        yield 1, f"But {hero} did not see it. ", ("end", hero, None, thing)
    elif scene == "play":
        hero, friend, thing = memory
        yield 2, f"Then {hero} lost the {thing}. ", ("lost", hero, friend, thing)
        yield 1, "At night they were tired. ", ("end", hero, friend, thing)
    elif scene == "lost":
        hero, friend, thing = memory
        for finder, other in ((hero, friend), (friend, hero)):
            for hideout in HIDEOUTS:
                yield 2, f"{finder} found it {hideout}. ", ("end", finder, other, thing)
        yield 3, "They looked for it, but it was gone. ", ("gone", thing)
    elif scene == "gone":
        (thing,) = memory
        yield 1, f"Now nobody has the {thing}. They are sad.\n", ("start",)
    elif scene == "end":
        holder, other, thing = memory
        yield 1, f"Now {holder} has the {thing}. ", ("mood", holder, other)
    elif scene == "mood":
        holder, other = memory
        yield 2, f"{he(holder).capitalize()} is happy.\n", ("start",)
        if other is not None:
            yield 3, "They are happy.\n", ("start",)
            yield 1, f"{holder} and {other} are friends.\n", ("start",)


OWNER, OTHER, PRONOUN = "who owns what", "who the other one is", "he or she"
THING, PLACE = "which thing it is", "where they are"
_OWN_SCENES, _FREE_SCENES = ("wish", "sorry", "play", "end"), ("start", "has")


def mark(state: Hashable, text: str) -> Iterator[Mark]:
    """Mark the names, pronouns, things and places that earlier sentences decide."""
    scene = state[0]
    free = [*PLACES, *THINGS.values()] if scene in ("start", "home") else []
    for phrase in free:
        if (at := text.find(phrase)) >= 0:
            yield at, at + len(phrase), CHANCE
    if scene == "has":
        meeting = MEETING[state[2]]
        yield text.index(meeting), text.index(meeting) + len(meeting), PLACE
    names = 0
    for word in re.finditer(r"\w+", text):
        if word[0] in PEOPLE:
            owner = scene in _OWN_SCENES or (scene == "mood" and not names)
            yield *word.span(), CHANCE if scene in _FREE_SCENES else OWNER if owner else OTHER
            names += 1
        elif word[0].lower() in ("he", "she", "him", "her"):
            yield *word.span(), PRONOUN
        elif word[0] in THINGS and scene != "home":
            yield *word.span(), THING


def broken(kind: str, word: str, possible: tuple[str, ...]) -> str:
    """Why this word cannot come here."""
    shown = " or ".join(possible)
    if kind == CHANCE and word in PEOPLE:
        return f"{word} is there already, so someone else must come"
    reasons = {
        OWNER: f"{shown} owns it",
        OTHER: f"it can only be {shown}",
        PRONOUN: f"the pronoun must be {shown}",
        THING: f"the thing is the {shown}",
        PLACE: f"the story's place needs “{shown}”",
    }
    if not possible:
        return "the story must continue differently"
    return reasons.get(kind, f"expected “{'” or “'.join(possible)}”")


LANGUAGE = Language(
    name="stories",
    title="Tiny stories",
    note="Short stories: names decide pronouns, and things change hands.",
    prompt="Mia lived by the sea. She had a ",  # what comes next here is a real choice
    build=lambda: Graph(("start",), choices),
    units=("story", "stories"),
    right="consistent",
    spelled=True,
    mark=mark,
    broken=broken,
)
