"""Judging: how much of a written text is right, and how much is copied or made up."""

from __future__ import annotations

from ..data.judging import Compared, ParsedText, Share
from ..data.languages import LANGUAGES, Language

FIRST_MISTAKES = "Red underlines mark the first mistake of each {unit}."
LACKING = "Red underlines mark words that the training text lacks."


def share_text(share: Share) -> str:
    """As "6 of 13 (22 to 70 %)"."""
    low, high = share.interval
    return f"{share.right:,} of {share.of:,} ({_percent(low)} to {_percent(high)} %)"


def judged_headline(share: Share, language: Language, *, nearly_best: bool = False) -> str:
    """How many of a model's sums, stories or lines are right; `nearly_best`: although its loss can hardly be lower."""
    units, right = language.units[1], language.right
    if nearly_best:
        return f"Nearly the best loss, yet only {share.right:,} of {share.of:,} {units} are {right}."
    if share.right in (0, share.of):
        return f"{f'All {share.of:,} of its' if share.right else f'None of its {share.of:,}'} {units} are {right}."
    part = share.right / share.of
    parts = ((0.9, "Nearly all"), (0.6, "Most"), (0.4, "About half"), (0.1, "Some"), (0.0, "Few"))
    most = next(word for least, word in parts if part >= least)
    return f"{most} of its {units} are {right}: {share.right:,} of {share.of:,}."


def right_of(language: Language, share: Share) -> str:
    """As "sums right: 6 of 13 (22 to 70 %)"."""
    return f"{language.judged}: {share_text(share)}"


def parsed_summary(parsed: ParsedText) -> str:
    """How much of a text in one of our languages is right, and its first mistake; empty if none was checked."""
    language = LANGUAGES[parsed.language]
    unit = language.units[0]
    share = parsed.share
    words = [f"{language.judged.capitalize()}: {share.right:,} of {share.of:,}."] if share.of else []
    if parsed.begun_with is not None and share.of:
        why = "has characters that this language lacks" if parsed.foreign else f"does not begin a valid {unit}"
        words.append(f"Your prompt {why}, so only later {LANGUAGES[parsed.language].units[1]} are checked.")
    elif parsed.begun_with is None and not words:
        words.append(f"No complete {unit} yet.")
    if parsed.fault is not None:
        word = parsed.fault.word.replace("\n", "⏎")
        where = f" in the unfinished {unit}" if share.of and share.right == share.of else ""
        shown = f", “{word}”" if word and f"“{word}”" not in parsed.fault.rule else ""
        words.append(f"The first mistake{where}{shown}: {parsed.fault.rule}.")
    return " ".join(words)


def compared_summary(compared: Compared) -> str:
    """How many of a text's words are those of the text that its model was trained on."""
    right, of = compared.words.right, compared.words.of
    if not of:
        return "No complete word yet."
    if of == 1:
        return f"Its one word {'occurs' if right else 'does not occur'} in the training text."
    said = f"All {of:,} words occur" if right == of else f"{right:,} of {of:,} words occur"
    return f"{said} in the training text."


def copied_summary(compared: Compared) -> str:
    """How many of its sentences are copied; empty if that is unknown."""
    right, of = compared.sentences.right, compared.sentences.of
    if not of:
        return ""
    if of == 1:
        return f"This sentence is {'copied' if right else 'not copied'} from the training text."
    return f"{right:,} of {of:,} sentences {'is' if right == 1 else 'are'} copied from the training text."


def _percent(share: float) -> str:
    """Whole percents; tenths near 0 and 100, so that some never reads as none."""
    shown = f"{100 * share:.0f}"
    return f"{100 * share:.1f}" if shown in ("0", "100") and 1e-9 < share < 1 - 1e-9 else shown
