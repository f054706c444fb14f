"""How the page looks: the gradio theme, the style sheet, and small pieces of HTML that use it."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from ..figures import palette
from ..words.result import Result

ASSETS = Path(__file__).parent / "assets"

_SANS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]


def _shades(name: str, lightest_first: str) -> gr.themes.Color:
    return gr.themes.Color(*lightest_first.split(), name=name)


# One accent, the colour of dense models (palette.DENSE stands at 600 and, for dark pages, at 400).
_ACCENT = _shades("accent", "#eef9fa #d5f0f3 #aee1e8 #78cdd9 #3fc4d6 #189bae #0c7a8b #0c6a79 #0d5562 #0f4651 #052c34")
_GREY = _shades("grey", "#f8f9fb #f1f3f6 #e4e7eb #cdd3da #98a2ad #6d7884 #505b68 #343d48 #212933 #161b22 #0e1217")

# Gradio's name for a part of the page → its look; if there are two, the second is for dark pages.
_LOOK: dict[str, str | tuple[str, str]] = {
    "body_background_fill": ("*neutral_50", "*neutral_950"),
    "body_text_color": (palette.INK, palette.DARK[palette.INK]),
    "body_text_color_subdued": (palette.MUTED, palette.DARK[palette.MUTED]),
    "background_fill_primary": ("#ffffff", "*neutral_900"),
    "background_fill_secondary": ("*neutral_100", "*neutral_800"),
    "border_color_primary": ("*neutral_200", "#2a323c"),
    "color_accent": "*primary_600",
    "color_accent_soft": ("*primary_50", "#12323a"),
    "link_text_color": ("*primary_700", "*primary_300"),
    "block_background_fill": ("#ffffff", "*neutral_900"),
    "block_label_text_color": "*body_text_color_subdued",
    "block_title_text_color": "*body_text_color",
    "block_title_text_size": "*text_sm",
    "block_title_text_weight": "700",
    "input_background_fill": ("#ffffff", "*neutral_950"),
    "input_border_color": ("*neutral_300", "#38424e"),
    "input_border_color_focus": ("*primary_500", "*primary_400"),
    "input_border_width": "1px",
    "input_radius": "8px",
    "input_shadow_focus": "0 0 0 3px color-mix(in srgb, *primary_500 18%, transparent)",
    "input_placeholder_color": "*neutral_500",
    "checkbox_background_color_selected": ("*primary_600", "*primary_500"),
    "button_large_radius": "9px",
    "button_primary_background_fill": "*primary_600",
    "button_primary_background_fill_hover": ("*primary_700", "*primary_500"),
    "button_primary_border_color": "*primary_600",
    "button_secondary_background_fill": ("#ffffff", "*neutral_900"),
    "button_secondary_background_fill_hover": ("*neutral_100", "*neutral_800"),
    "button_secondary_border_color": ("*neutral_300", "#38424e"),
}


def theme() -> gr.themes.Base:
    """The product's theme for `launch(theme=…)`: calm greys, one accent, a font that gradio itself ships."""
    settings = {}
    for name, look in _LOOK.items():
        light, dark = look if isinstance(look, tuple) else (look, None)
        settings |= {name: light} | ({f"{name}_dark": dark} if dark else {})
    return gr.themes.Base(
        primary_hue=_ACCENT,
        secondary_hue=_ACCENT,
        neutral_hue=_GREY,
        font=["Arabic script", gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), *_SANS],
        font_mono=["Arabic script", gr.themes.LocalFont("IBM Plex Mono", weights=(400,)), *_SANS],
    ).set(**settings)


def css() -> str:
    """The style sheet for `launch(css=…)`: the palette as variables (--query, --dense, …), then the rules.

    A tab's own rules are in assets/<tab>.css; chart.css comes with `chart.head_html`.
    """
    tabs = sorted(path for path in ASSETS.glob("*.css") if path.name not in ("page.css", "chart.css"))
    return "\n".join([_variables(), *(path.read_text(encoding="utf-8") for path in (ASSETS / "page.css", *tabs))])


def stat_cards(cards: Sequence[tuple[str, str, str]]) -> str:
    """A row of stat cards as HTML from (label, value, note); values use tabular figures. Everything is escaped."""
    shown = ""
    for label, value, note in (map(html.escape, card) for card in cards):
        small = f'<dd class="stat-note">{note}</dd>' if note else ""
        shown += f'<div class="stat"><dt>{label}</dt><dd class="stat-value">{value}</dd>{small}</div>'
    return f'<dl class="stats">{shown}</dl>'


def notice(text: str, kind: str = "info") -> str:
    """A quiet box with one sentence; `kind` is info, good, warning or error. Escaped."""
    return f'<p class="notice notice-{kind}" role="{"alert" if kind == "error" else "status"}">{html.escape(text)}</p>'


def result(found: Result, shown: str = "", tag: str = "h3") -> str:
    """A result as HTML: its headline, its number, what `shown` (HTML) shows of it, and its details folded. Escaped."""
    number = f'<p class="num">{html.escape(found.number)}</p>' if found.number else ""
    details = f"<details><summary>Details</summary>{quiet(found.details)}</details>" if found.details else ""
    return f"<{tag}>{html.escape(found.headline)}</{tag}>{number}{shown}{details}"


def heading(title: str, text: str = "") -> str:
    """A section's title with a quiet line under it. Escaped."""
    line = f"<p>{html.escape(text)}</p>" if text else ""
    return f'<div class="section-heading"><h3>{html.escape(title)}</h3>{line}</div>'


def badge(text: str, kind: str = "plain") -> str:
    """A small label such as *recorded*; `kind` is plain, dense, moe, query, key, value or scores. Escaped."""
    return f'<span class="badge badge-{html.escape(kind, quote=True)}">{html.escape(text)}</span>'


def progress(share: float, text: str) -> str:
    """A thin bar filled to `share` (0 … 1) with its sentence: what is done and how long it still takes. Escaped."""
    said = html.escape(text, quote=True)
    named = f'role="progressbar" aria-valuenow="{100 * share:.0f}" aria-label="{said}"'
    return f'<div class="progress" {named}><i style="--share: {share:.3f}"></i><p>{said}</p></div>'


def _variables() -> str:
    colors = {name.lower(): color for name, color in vars(palette).items() if name.isupper() and isinstance(color, str)}
    light = " ".join(f"--{name}: {color};" for name, color in colors.items())
    dark = " ".join(f"--{name}: {palette.DARK[color]};" for name, color in colors.items())
    return f":root {{ {light} }}\n.dark {{ {dark} }}"


@dataclass(frozen=True)
class Cell:
    """A table cell that is more than its text."""

    text: str = ""
    value: float | None = None
    """The exact number behind the text, which the saved table holds instead."""
    html: str = ""
    """HTML to show instead of the text; already escaped."""
    title: str = ""
    """The text shown on hover."""
    kind: str = ""
    """A class of the style sheet: chosen, words, or a role (q, k, v, s)."""


def table(head: Sequence[str | Cell], rows: Sequence[Sequence[Any]], *, save: str = "", classes: str = "") -> str:
    """A quiet HTML table; everything is escaped. `save` is the file name (without ending) of a button that saves it."""
    body = "".join(f"<tr>{''.join(_cell('td', c) for c in row)}</tr>" for row in rows)
    above = f"<thead><tr>{''.join(_cell('th', c) for c in head)}</tr></thead>" if head else ""
    shown = f'<table class="{f"plain-table {classes}".strip()}">{above}<tbody>{body}</tbody></table>'
    shown = f'<div class="scroll-x" tabindex="0">{shown}</div>'  # usable by keyboard, too
    if not save:
        return shown
    button = f'<button type="button" class="save-csv" data-csv="{html.escape(save, quote=True)}">Save as CSV</button>'
    return f'<div class="table-box">{shown}{button}</div>'


def _cell(tag: str, cell: Any) -> str:
    cell = cell if isinstance(cell, Cell) else Cell(str(cell))
    exact = "" if cell.value is None else repr(float(cell.value))
    said = {"class": cell.kind, "title": cell.title, "data-value": exact}
    more = "".join(f' {name}="{html.escape(value, quote=True)}"' for name, value in said.items() if value)
    scope = ' scope="col"' if tag == "th" else ""
    return f"<{tag}{scope}{more}>{cell.html or html.escape(cell.text)}</{tag}>"


def quiet(text: str) -> str:
    """A line of escaped text in a quiet style, as HTML."""
    return f'<p class="quiet-line">{html.escape(text)}</p>'


FORECASTS = (2, 3, 5, 10, 15, 20, 30, 45, 60, 90)
"""Minutes that a forecast may name; it names the next one that is not less."""


def about(seconds: float) -> str:
    """A forecast in seconds, as coarse as it is sure: a machine that others use keeps no closer promise."""
    if not math.isfinite(seconds):
        return "a long time"
    if seconds < 50:
        return "under a minute"
    if seconds > 60 * FORECASTS[-1]:
        return f"{math.ceil(seconds / 3600)} hours"
    return "about " + next(f"{n} min" for n in FORECASTS if seconds <= 60 * n)


def duration(seconds: float) -> str:
    """Seconds in words, such as “12 s” or “3 min”."""
    if not math.isfinite(seconds):
        return "a long time"
    if seconds < 1:
        return "under a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
