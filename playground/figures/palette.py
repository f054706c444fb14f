"""The colours of the product, by what they mean, for light and dark pages; figures, words and formulas share them.

A figure is always drawn with the light colours. On a dark page the chart component replaces each light colour by its
dark partner. So every value on the left of `DARK` is distinct and means one thing.
"""

from __future__ import annotations

# The four roles of attention, far from the red and the blue of signs and told apart by colour-blind people, too. Each
# also has a second cue wherever it is drawn: a letter, a dash or a place.
QUERY = "#b01f86"
KEY = "#1f7d43"
VALUE = "#5c340b"
SCORES = "#7a4fd0"

# The two families of models; a plain model is a dense one.
DENSE = "#0c7a8b"
MOE = "#ae5c15"

# Words and lines.
INK = "#1d2733"
MUTED = "#5c6875"
FAINT = "#858f9a"
GRID = "#e4e7eb"
PAPER = "#fffffe"
BAND = "#eef1f4"
HIGHLIGHT = "#946b00"
GOOD = "#288248"
BAD = "#ca3e56"

# Further runs beside the current one, in the order in which they are added.
OTHERS = ("#8a6fc9", "#b5651e", "#3f8f6b", "#c24f8f", "#6b7f1f", "#4f7fb8")

# Experts of a mixture, by number; the number is always beside the colour.
EXPERTS = (*OTHERS, "#a33d3d", "#4d5d6e")

# One hue from nothing to everything (0 … 1), and two hues that meet at zero. No zero looks like the card, which masked
# cells show.
PATTERN_SCALE = ((0.0, "#f2effb"), (0.15, "#e6defa"), (0.4, "#b8a2ec"), (0.58, "#8358d6"), (1.0, "#4b2196"))
SEQUENTIAL_SCALE = ((0.0, "#fdfefe"), (0.2, "#d5ecef"), (0.5, "#7fc0ca"), (0.8, "#22899a"), (1.0, "#07505c"))
DIVERGING_SCALE = ((0.0, "#1d4fb4"), (0.25, "#7ea6ee"), (0.5, "#f3f2ef"), (0.75, "#f0a08a"), (1.0, "#b5331c"))

# Light → dark. Chosen for at least 4.5:1 (words) or 3:1 (marks) on the page's dark card.
DARK = {
    QUERY: "#ff8fd8",
    KEY: "#6fe09a",
    VALUE: "#c3935f",
    SCORES: "#b397ff",
    DENSE: "#3fc4d6",
    MOE: "#ff9d4d",
    INK: "#e9edf2",
    MUTED: "#a3aebb",
    FAINT: "#6d7884",
    GRID: "#2a323c",
    PAPER: "#161b22",
    BAND: "#212933",
    HIGHLIGHT: "#f2c14e",
    GOOD: "#5fce88",
    BAD: "#ff8093",
    "#8a6fc9": "#b9a3f2",
    "#b5651e": "#e8a063",
    "#3f8f6b": "#79cfa8",
    "#c24f8f": "#f08cc2",
    "#6b7f1f": "#b6cc5e",
    "#4f7fb8": "#8fb8ea",
    "#a33d3d": "#f29b94",
    "#4d5d6e": "#a9b7c6",
    "#f2effb": "#242a3c",
    "#e6defa": "#332d5a",
    "#b8a2ec": "#56419a",
    "#8358d6": "#6c48c6",
    "#4b2196": "#dccfff",
    "#fdfefe": "#1b212b",
    "#d5ecef": "#1d3a42",
    "#7fc0ca": "#1f6b78",
    "#22899a": "#38b0c2",
    "#07505c": "#c5f3fa",
    "#1d4fb4": "#8fb7ff",
    "#7ea6ee": "#3f63a8",
    "#f3f2ef": "#2a2f38",
    "#f0a08a": "#a3513d",
    "#b5331c": "#ffab95",
}


def of_kind(kind: str) -> str:
    """The colour for this kind of model: moe or dense."""
    return MOE if kind == "moe" else DENSE
