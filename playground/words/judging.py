"""What a written text is worth, in words: what of it is right, and what of it is copied or made up."""

from __future__ import annotations

from ..data.judging import LONG, Compared, ParsedText, Share
from ..data.languages import LANGUAGES, Language

UNDERLINED = "Underlined in red: what breaks a rule of the text, or is no word of it."
FEW = 100
"""Words below which their number stands beside a share of them."""


def share_text(share: Share) -> str:
    """As "6 of 13 (22 to 70 %)"."""
    low, high = share.interval
    return f"{share.right:,} of {share.of:,} ({_percent(low)} to {_percent(high)} %)"


def right_of(language: Language, share: Share) -> str:
    """As "sums right: 6 of 13 (22 to 70 %)"."""
    return f"{language.judged}: {share_text(share)}"


def parsed_summary(parsed: ParsedText) -> str:
    """One sentence of a text of one of our languages, and what is wrong first."""
    language = LANGUAGES[parsed.language]
    unit = language.units[0]
    words = f"{right_of(language, parsed.share).capitalize()}." if parsed.share.of else ""
    if (begun := parsed.begun_with) is not None:
        why = f"what it goes on from has a mistake, “{begun.word}”: {begun.rule}"
        if parsed.foreign:
            why = "it holds letters that the language does not have"
        words = f"{words} Its first {unit} is not judged: {why}.".strip()
    elif not words:
        words = f"No whole {unit} yet."
    if parsed.fault is not None:
        shown = parsed.fault.word if parsed.fault.word != "\n" else "line break"
        words += f" The first mistake, “{shown}”: {parsed.fault.rule}."
    return words


def compared_summary(compared: Compared) -> str:
    """One or two sentences on a text held against the one that its writer learned from."""
    if not compared.words.of:
        return "No whole word yet."
    words = f"Words that occur in the text learned: {share_text(compared.words)}"
    if (usual := compared.usual).of:
        few = f" ({usual.right} of {usual.of})" if usual.of < FEW else ""
        words += f"; of held-out text {100 * usual.right / usual.of:.0f} %{few}"
    return f"{words}. {copied_summary(compared)}".strip()


def copied_summary(compared: Compared) -> str:
    """How much of it is no writing of its own; empty where that cannot be told."""
    right, of = compared.sentences.right, compared.sentences.of
    if of == 1:
        return f"Its one whole sentence {'stands' if right else 'does not stand'} in the text learned as it is."
    if of:
        stand = "stands in the text learned as it is" if right == 1 else "stand in the text learned as they are"
        return f"{right:,} of {of:,} sentences {stand}."
    if not compared.copied.of:
        return ""
    share = _percent(compared.copied.right / compared.copied.of)
    words = f"{share} % is copied word for word, {LONG} characters or more in a row"
    if compared.usual_copied.of:
        words += f"; of held-out text {_percent(compared.usual_copied.right / compared.usual_copied.of)} %"
    return f"{words}."


def _percent(share: float) -> str:
    """Whole percents, and tenths where they are not to be taken for all or nothing."""
    shown = f"{100 * share:.0f}"
    return f"{100 * share:.1f}" if shown in ("0", "100") and 1e-9 < share < 1 - 1e-9 else shown
