"""Judging: our own texts have no mistake, a planted one of each kind is found, and intervals are honest.

Unknown words are counted.
"""

import random
import re
from itertools import pairwise

import numpy as np
import pytest

from playground.data import LANGUAGES, corpus_from_sentences, corpus_from_text
from playground.data.judging import LearnedText, Share, judge, without_divided_word
from playground.data.languages.grammar import ENDS, SPELLING, grammar_of
from playground.data.languages.made import addition, brackets, copy, dialects, phonebook, stories


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_a_language_writes_is_right(name):
    text = LANGUAGES[name].sample(19_000, seed=11)
    judged = judge(LANGUAGES[name], text)
    assert judged.fault is None and judged.share.right == judged.share.of > 80


@pytest.mark.parametrize("name", LANGUAGES)
def test_wherever_a_right_text_is_cut_it_stays_right(name):
    text = LANGUAGES[name].sample(150, seed=5)
    for cut in range(1, len(text)):
        assert judge(LANGUAGES[name], text[:cut]).fault is None, text[:cut][-60:]
        begun, rest = text[:cut], text[cut:]
        assert judge(LANGUAGES[name], rest, begun).fault is None


PLANTED = {
    ("stories", stories.OWNER): (r"So (\w+) gave", "other"),
    ("stories", stories.OTHER): (r"\. (\w+) asked, ", "other"),
    ("stories", stories.PRONOUN): (r" (She|He) (?:had|liked|wanted)", {"She": "He", "He": "She"}),
    ("stories", stories.THING): (r"(?:liked|with|lost) the (\w+)", "thing"),
    ("stories", stories.PLACE): (
        r" came (?:to|up|out of) the (?:(?!hill)\w+ )?(\w+)",
        {"sea": "mill", "village": "sea", "town": "sea"},
    ),
    ("stories", "free choices"): (r"Then (\w+) came", "hero"),
    ("stories", SPELLING): (r"lived", {"lived": "lved"}),
    ("stories", ENDS): (r"was (s)ad", {"s": " s"}),
    ("addition", addition.DIGITS[0]): (r"=(\d+)\n", "plus 1"),
    ("addition", addition.DIGITS[1]): (r"=(\d\d+)\n", "plus 10"),
    ("addition", addition.DIGITS[2]): (r"=(1\d\d)\n", {"1": "2"}),
    ("addition", "free choices"): (r"\n(\d\d)\+", "times 10"),
    ("copy", copy.COPIED): (r" (\w+)\n", "last letter"),
    ("brackets", brackets.CLOSING): (r"[([{]([)\]}])", {")": "]", "]": "}", "}": ")"}),
    ("phonebook", phonebook.NUMBER): (r" (\d+)\n", "plus 1"),
    ("dialects", dialects.VERB): (r"the ship (\w+)", {"sails": "boils", "turns": "grows", "waits": "cools"}),
    ("dialects", dialects.WHERE): (r"the ship \w+ (at|in|for)", {"at": "on", "in": "on", "for": "on"}),
    ("dialects", dialects.SUBJECT): (r"the (ship)", {"ship": "sails"}),
}  # fmt: skip


def planted(found, how, unit):
    word = found[found.lastindex or 0]
    if isinstance(how, dict):
        return next((word.replace(old, new, 1) for old, new in how.items() if old in word), None)
    names = re.findall("|".join(stories.PEOPLE), unit)
    return {
        "other": next(p for p in stories.PEOPLE if p not in names),
        "hero": names[0] if names else "",
        "thing": next(t for t in stories.THINGS if t not in unit),
        "plus 1": f"{int(word) + 1}" if word.isdigit() and word[-1] != "9" else None,
        "plus 10": f"{int(word) + 10}" if word.isdigit() and word[-2:-1] != "9" else None,
        "times 10": f"{word}0",
        "last letter": word[:-1] + ("a" if word[-1] != "a" else "b"),
    }[how]


@pytest.mark.parametrize(("name", "kind"), PLANTED)
def test_one_mistake_is_found_at_its_word_with_its_rule(name, kind):
    language, (pattern, how) = LANGUAGES[name], PLANTED[name, kind]
    units = language.sample(19_000, seed=3).split("\n")[:-1]
    tried = 0
    for before, unit in pairwise(units):
        whole = unit + "\n"
        found = next(re.finditer(pattern, "\n" + whole), None)
        wrong = planted(found, how, unit) if found else None
        if wrong is None:
            continue
        start, end = (i - 1 for i in found.span(found.lastindex or 0))
        text = f"{before}\n{whole[:start]}{wrong}{whole[end:]}"
        judged = judge(language, text)
        assert judged.share == Share(1, 2) or not before, text
        fault, at = judged.fault, len(before) + 1 + start
        assert fault.kind == kind and fault.rule, (text, fault)
        assert text[fault.start : fault.end].strip() == fault.word.strip() and fault.start <= at < fault.end, (
            text,
            fault,
        )
        tried += 1
        if tried == 25:
            break
    assert tried >= 5


def test_shares_count_whole_units_and_their_intervals_hold_what_they_promise():
    judged = judge(LANGUAGES["addition"], "1+2=3\n4+4=9\n5+5=1")
    assert judged.share == Share(1, 2) and judge(LANGUAGES["addition"], "1+").share == Share(0, 0)
    assert judge(LANGUAGES["brackets"], "\n\n\n()\n").share == Share(1, 1)  # an empty line is no achievement
    assert judge(LANGUAGES["stories"], "\n\nMia").share == Share(0, 2)
    three = judge(LANGUAGES["addition"], "1+1=3\n2+2=4\n3+3=7\n")  # each wrong line has one mark
    assert three.share == Share(1, 3) and [fault.start for fault in three.faults] == [4, 16]
    language = LANGUAGES["addition"]
    assert judge(language, "46\n1+1=2\n", "12+34=").share == Share(2, 2)
    right = judge(language, "47\n1+1=2\n", "12+34=")
    assert right.share == Share(1, 2) and (right.fault.start, right.fault.end) == (0, 2)
    assert judge(language, "46\n1+1=2\n", "Once upon ").share == Share(1, 1)
    assert judge(language, "46\n1+1=2\n", "").share == Share(1, 1)  # it may begin anywhere
    # “No whole story yet” stood under one that ended, begun with a letter that the language does not have.
    story, language = " lived by the sea. She is happy.\nMax lived", LANGUAGES["stories"]
    strange = judge(language, story, "M�a")
    assert strange.foreign and strange.begun_with is not None and strange.share == Share(0, 0)
    assert judge(language, " lived by", "Mia").begun_with is None
    slip = judge(LANGUAGES["addition"], "46\n1+1=2\n", "12++34=")
    assert slip.share == Share(1, 1) and slip.begun_with is not None and not slip.foreign
    text = '"May I have the kite?" '
    story = f"Mia lived by the sea. She had a red kite. Then Max came to the sea. Max asked, {text}But Mia said no."
    assert judge(LANGUAGES["stories"], story).fault is None
    as_words = story.replace('"May', '" May').replace('?"', '? "')
    assert judge(LANGUAGES["stories"], as_words).fault is not None
    assert judge(LANGUAGES["stories"], as_words, spaced=False).fault is None
    rng = np.random.default_rng(0)
    for share in (0.05, 0.3, 0.9):
        rights = rng.binomial(13, share, 4000)
        held = [low <= share <= high for low, high in (Share(int(r), 13).interval for r in rights)]
        assert np.mean(held) > 0.9
    assert Share(0, 0).interval == (0.0, 1.0)
    assert sum([Share(1, 2), Share(2, 2)], Share(0, 0)) == Share(3, 4)


def test_texts_are_held_against_the_one_learned_without_the_word_that_the_cut_divides():
    words = ["lighthouse", "keeper", "walked", "slowly", "under", "the", "sky", "and", "salt", "for", "his", "dog"]
    random.seed(0)
    text = " ".join(random.choice(words) for _ in range(3000))
    learned = LearnedText(text)
    found = learned.compare("the keeper zzyx slowly wombatting his dog and the sal")
    assert found.words == Share(7, 9)  # the last may be cut short
    shown = "the keeper zzyx slowly wombatting"
    assert [shown[a:b] for a, b in found.strange] == ["zzyx", "wombatting"]
    assert learned.compare("eper walked ", begun="the ke").words == Share(1, 1)
    corpus = corpus_from_text("pine " * 178 + "needles " + "sea " * 23)  # 990 characters: the last 99 judge
    learned = corpus.learned()
    assert set(learned.words) == {"pine"}
    found = learned.compare("pine n needles ")
    assert found.words == Share(1, 3)
    assert without_divided_word("the ", "sea") == ("the ", "sea") and without_divided_word("the", " sea") == (
        "the",
        " sea",
    )
    assert without_divided_word("I don", "'t") == ("I ", "")
    sentences, both = corpus_from_sentences().learned(), "the dog. the cat sleeps on the mat. the"
    assert sentences.compare(f" sees {both}", begun="a bird sings. the cat").sentences == Share(2, 2)
    assert sentences.compare(f" hears {both}", begun="the cat").sentences == Share(1, 2)
    assert sentences.compare("the girl sees the bird.").sentences == Share(0, 1)  # held out


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_character_has_a_kind_and_every_kind_a_reason(name):
    grammar = grammar_of(LANGUAGES[name])
    graph = LANGUAGES[name].graph
    kinds = set()
    for edge in range(0, len(graph.texts), max(1, len(graph.texts) // 300)):
        found = grammar.kinds_of_characters(edge)
        assert len(found) == len(graph.texts[edge])
        kinds |= set(found)
    for kind in kinds:
        for possible in ((), ("x",), ("x", "y")):
            assert LANGUAGES[name].broken(kind, "word", possible)
