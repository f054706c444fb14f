"""All text keeps to the house style: short sentences, plain phrasing, one term per concept, British spelling."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import codespell_lib
import pytest

from .prose import Sentence, everything, in_python, is_prose, sentences, words

LONGEST, LONGEST_HEADING = 20, 12
"""Words of a sentence and of a heading."""

PHRASES = {
    r"^(?:What|Who|Whoever|Whose|Of what|Whether)\b.*\.$": "begin with a noun",
    r"\bas unsure as\b": "perplexity",
    r"\b(?:go|goes|going|went) on\b": "continue",
    r"\banew\b": "again",
    r"\ball the same\b|\bbut for\b": "anyway, except for",
    r"\bwhat is left\b": "the remaining loss",
    r"\b(?:cannot|can not|not) be told\b|\btold\b|\btaught\b|\bmissed\b|\bput off\b": "an active verb",
    r"\bdrawn\b": "sampled, plotted",
    r"\b(?:nobody|somebody|whoever)\b": "a real subject",
    r"\bso (?:many|few)\b": "the number, or too few",
    r"\balike\b": "equally, similar, the same",
    r"\b(?:stands?|stood)\b(?! (?:for|out)\b)": "is",
    r"\bvisit(?:s|ed)?\b": "use",
    r"\bwakes? up\b": "a tooltip that says why the button is disabled",
    r"\b(?:token|head|key|query|queries|neuron|row|column)s? (?:asks?|answers?)\b|\banswers? to\b": "query, key",
    r"\bas (?:it is|they are|they stand)\b": "unchanged",
    r"\bby so-?man(?:y|ieth)\b|\bno matter for\b": "English",
}
"""Phrasings that are no plain English, and what to write instead."""

TERMS = {
    r"\bfloors?\b": "best possible loss",
    r"\b(?:rung|ladder|guesser)s?\b": "baseline",
    r"\bblend(?:s|ed)?\b": "weighted average",
    r"\bbends?\b": "activation",
    r"\bfeed-?forward (?:layer|part|network)s?\b": "MLP",
    r"\bmixtures?\b(?![- ]of[- ]experts)": "MoE model",
    r"\blook(?:s|ed|ing)? (?:at|back)\b": "attend to",
    r"\bthe processor\b": "the CPU",
    r"\blevels? out\b": "level off",
}
"""Words that are used for a concept whose term is another one."""

EXCEPTIONS = [
    # (path, what a sentence contains, why)
    ("playground/data/baselines.py", "floor", "the name of a record's field"),
    ("playground/data/languages/made/stories.py", "Now nobody has", "a story in the language that models learn"),
    ("playground/ui/tabs/moe/pair_panel.py", "dense mixture", "names of a form's fields"),
    ("tests/words/walk.txt", "pair i is numbers", "a formula"),
    ("tests/words/walk.txt", " = ", "a formula"),
    ("tests/words/card_and_shell.txt", "model-index:", "JSON"),
    ("playground/words/walk/attention.py", "pair i is numbers", "a formula"),
    ("docs/lessons.md", ";", "a table of the facts that a lesson may use"),
    ("docs/lessons.md", "*curve*", "names of places that a lesson may point at"),
    ("docs/lessons.md", "*generate button*", "names of places that a lesson may point at"),
    ("docs/lessons.md", "*head place*", "names of places that a lesson may point at"),
    ("playground/lessons/files/*.json", "ladder", "a place that teachers' lesson files name"),
    ("playground/lessons/files/first-model.json", "rung", "the name of a step, in which visitors' progress is stored"),
    ("playground/lessons/files/*.json", "alike", "the name of a choice or of a fact"),
    ("playground/lessons/files/*.json", "look at the", "the visitor looks, not the head"),
    ("playground/lessons/files/who-looks-at-whom.json", "looks at", "before attention has its name"),
    ("playground/lessons/files/who-taught-it-this.json", "Who taught it this?", "the question that visitors ask"),
    ("playground/ui/lessons/welcome.py", "look at every number", "the visitor looks, not the head"),
    ("playground/service/classes/codes.py", "ladder", "one of the words that codes are made of"),
]


@cache
def read() -> tuple[Sentence, ...]:
    return tuple(dict.fromkeys(everything()))


def findings(wrong) -> Iterator[str]:
    """The sentences that `wrong` complains about, which no exception allows."""
    for sentence in read():
        allowed = any(fnmatch(sentence.path, path) and part in sentence.text for path, part, _ in EXCEPTIONS)
        if not allowed and (complaint := wrong(sentence)):
            yield f"{sentence.path}: {complaint}: {sentence.text}"


def report(found: Iterator[str]) -> None:
    lines = list(found)
    assert not lines, f"{len(lines)}:\n" + "\n".join(lines)


def test_sentences_are_short():
    def wrong(sentence):
        n, most = len(words(sentence.text)), LONGEST_HEADING if sentence.heading else LONGEST
        return n > most and f"{n} words"

    report(findings(wrong))


@pytest.mark.parametrize("list_of", [PHRASES, TERMS], ids=["phrases", "terms"])
def test_plain_words_and_one_term_per_concept(list_of):
    def wrong(sentence):
        for phrase, better in list_of.items():
            if found := re.search(phrase, sentence.text, re.IGNORECASE if not phrase.startswith("^") else 0):
                return f"“{found[0][:30]}” → {better}"

    report(findings(wrong))


@cache
def spellings() -> dict[str, str]:
    """Misspelt or American word → what to write, from codespell's own lists."""
    data = Path(codespell_lib.__file__).parent / "data"
    lines = (data / "dictionary.txt").read_text(encoding="utf-8").splitlines()
    wrong = dict(line.split("->", 1) for line in lines)
    lines = (data / "dictionary_en-GB_to_en-US.txt").read_text(encoding="utf-8").splitlines()
    for british, american in (line.split("->", 1) for line in lines):
        for word in american.rstrip(",").split(","):
            wrong.setdefault(word.strip(), british)
    return {word: right for word, right in wrong.items() if word not in ALLOWED}


ALLOWED = {"program", "programs", "optimizer", "optimizers", "tokenizer", "tokenizers"}
"""Technical terms whose American spelling is the usual one."""
ALLOWED |= {"tracin"}
"""The name of a method."""
ALLOWED |= {"story", "stories", "routing", "biased"}
"""British, too, though the list takes them for American alone."""


def test_spelling():
    found = {
        f"{sentence.path}: {word} → {spellings()[word.lower()]}: {sentence.text}"
        for sentence in read()
        for word in re.findall(r"[A-Za-z]{3,}", sentence.text)
        if word.lower() in spellings() and not any(word in part for _, part, _ in EXCEPTIONS)
    }
    report(sorted(found))


def test_every_exception_is_needed():
    assert all(reason for *_, reason in EXCEPTIONS)
    unused = [
        (path, part)
        for path, part, _ in EXCEPTIONS
        if not any(fnmatch(s.path, path) and part in s.text for s in read())
    ]
    assert not unused


def test_the_check_sees_what_it_should():
    source = 'def f(n):\n    """Left out."""\n    '
    source += "return f\"The model has {n} heads{' in all' if n else ''}. It is <b>small</b>.\"\n"
    (text,) = filter(is_prose, in_python(source))
    assert sentences(text) == ["The model has … heads in all.", "It is small."]
    assert len(words("Loss 1.44, 0.2 bits; a 95 % interval.")) == 7
    assert not is_prose("x = model.embedding(torch.tensor([ids]))") and not is_prose("n_layers")
    assert spellings()["color"] == "colour" and spellings()["recieve"].startswith("receive")
