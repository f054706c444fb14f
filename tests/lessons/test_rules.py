"""Rules that every lesson which ships keeps: short steps, no answer before the guess, no noise that is graded."""

import itertools
import re

import pytest

from playground.lessons.facts import FACTS, is_word
from playground.lessons.reading import Ask, Lesson, Step, all_lessons, facts_in
from playground.lessons.vocabulary import PLACES

WORDS_AT_MOST, NUMBERS_AT_MOST = 60, 1
PARTIES = {"model", "bigram", "dense", "attention", "value", "last"}
LEADS = ("points-lead", "model-lead", "bits-8-cost")
"""Facts that are differences of two measurements, of which small ones are noise."""
HEADLINE = {"loss", "perplexity", "floor"}
"""Facts that stand over the curve of a run that has ended."""
STEPS = [(lesson, step) for lesson in all_lessons() for step in lesson.steps]
each_lesson = pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.id)


def bare(name: str) -> str:
    """A fact's name without its run's."""
    return name if name in FACTS else name.partition(".")[2]


def before(step: Step) -> str:
    """What stands there before the guess."""
    return f"{step.say} {step.ask.question if step.ask else ''}"


def after(step: Step) -> list[str]:
    """What may stand there afterwards: one text for every way in which the cases can fall out."""
    return [" ".join(case.says for case in cases) for cases in itertools.product(*step.show)]


def numbers_in(words: str) -> list[str]:
    """Numerals, and facts that are numbers; a label such as int8 is none."""
    plain = re.sub(r"\{[^{}]*\}|\b(?:int8|fp32|bf16)\b", " ", words)
    return re.findall(r"\d[\d.,]*", plain) + [name for name in facts_in(words) if not is_word(name)]


def decides(ask: Ask) -> set[str]:
    """The facts that the answer hangs on."""
    return {bare(name) for name in ask.compared} & {*FACTS}


def content(words: str) -> set[str]:
    return {word for word in re.findall(r"\w+", words.lower()) if len(word) > 3}


@each_lesson
def test_a_step_is_short(lesson: Lesson):
    for step in lesson.steps:
        longest = max(after(step), key=lambda words: len(words.split()))
        assert len(f"{before(step)} {longest}".split()) <= WORDS_AT_MOST, step.id
        for words in (before(step), *after(step)):
            assert len(numbers_in(words)) <= NUMBERS_AT_MOST, (step.id, words)


def earlier(lesson: Lesson, step: Step) -> str:
    """All that a visitor has read in this lesson when the question comes, the question aside."""
    read = [step.say]
    for one in lesson.steps[: lesson.steps.index(step)]:
        read += [before(one), *(case.says for group in one.show for case in group)]
    return " ".join(read)


@each_lesson
def test_no_answer_stands_there_before_the_guess(lesson: Lesson):
    """The number asked for was not told, and the right choice is not a phrase that was read."""
    for step in lesson.steps:
        if (ask := step.ask) is None:
            continue
        told = earlier(lesson, step)
        if ask.number:
            assert not decides(ask) & {bare(name) for name in facts_in(f"{told} {ask.question}")}, step.id
            trained = [one for one in lesson.steps[: lesson.steps.index(step)] if one.doing == "run"]
            assert not trained or not decides(ask) & HEADLINE, f"{step.id}: it stood over the curve of the run"
            continue
        for case in ask.right:
            if case.when or case.says not in ask.choices or len(ask.right) > 1:
                continue
            others = content(" ".join(words for name, words in ask.choices.items() if name != case.says) + ask.question)
            own = content(ask.choices[case.says]) - others
            assert len(own) < 2 or not own <= content(told), f"{step.id}: “{ask.choices[case.says]}” was read before"


@each_lesson
def test_a_lesson_brings_its_own_prompt(lesson: Lesson):
    """What another lesson has typed is no prompt of this one."""
    for step in lesson.steps:
        for tab in {step.sets.get("tab"), PLACES[step.point].tab if step.point else ""} & {"generate", "inspect"}:
            if not step.point or "bets" not in step.point:
                assert f"{tab}.prompt" in lesson.scene, (lesson.id, step.id)


@each_lesson
def test_noise_is_not_graded(lesson: Lesson):
    """Where two measurements are compared, a choice says that they do not differ, and covers small differences."""
    for step in lesson.steps:
        if step.ask is None:
            continue
        found = decides(step.ask)
        for name in found & {*LEADS, "winner", "bits-8-worth"}:
            assert step.ask.choices, f"{step.id}: {name} is noise where it is small"
            assert "alike" in step.ask.choices, step.id
        if found & {*LEADS}:
            limits = [float(part[2]) for case in step.ask.right for part in case.when if part[0] in LEADS]
            assert limits and any(limits), f"{step.id}: a difference that is small is none"


@each_lesson
def test_an_instruction_does_not_name_one_of_the_choices_alone(lesson: Lesson):
    """Whichever is right: what only one choice says is not what the step has just said."""
    for step in lesson.steps:
        if (ask := step.ask) is None or ask.number:
            continue
        said, named = content(f"{step.title} {step.say}"), []
        for name, words in ask.choices.items():
            others = content(" ".join(other for each, other in ask.choices.items() if each != name))
            own = content(words) - others - PARTIES
            named += [words] if own and own <= said else []
        assert not named or len(named) == len(ask.choices), f"{step.id}: {named} stands in “{step.say}”"


def test_every_question_of_one_choice_has_no_habit():
    """The right choice does not always stand at the same place in the file, and is not always the longest one."""
    asked = [step.ask for _, step in STEPS if step.ask and step.ask.choices and len(step.ask.right) == 1]
    fixed = [ask for ask in asked if ask.right[0].says in ask.choices]
    longest = [max(ask.choices, key=lambda name: len(ask.choices[name])) == ask.right[0].says for ask in fixed]
    assert len(fixed) > 10 and sum(longest) <= 0.6 * len(fixed)
