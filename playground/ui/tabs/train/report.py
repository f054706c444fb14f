"""A run's report: one HTML page with its curve, which needs neither network nor scripts."""

from __future__ import annotations

import html

from ....figures.curve_svg import curve_svg
from ....service.views import RunView
from ....words.training import in_steps
from ... import theme
from ...forms.run import setting_name, setting_shown
from . import watch

# even if something slipped through: no script runs and nothing is fetched
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_STYLE = """
:root {
  color-scheme: light;
  --ink: #1d2733; --muted: #5c6875; --paper: #ffffff; --ground: #f8f9fb; --edge: #e4e7eb;
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 24px 16px 64px; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums;
}
main { max-width: 840px; margin: 0 auto; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.02em; overflow-wrap: anywhere; }
h2 { font-size: 1.125rem; margin: 0 0 8px; }
p { margin: 6px 0; } .quiet-line, .note { color: var(--muted); font-size: 0.875rem; }
section {
  background: var(--paper); border: 1px solid var(--edge); border-radius: 14px; padding: 18px 20px; margin-top: 16px;
}
.picture { overflow-x: auto; }
.still { display: block; width: 100%; min-width: 620px; height: auto; font-family: inherit; }
.stats { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 10px; margin: 16px 0 0; }
.stat { background: var(--paper); border: 1px solid var(--edge); border-radius: 12px; padding: 10px 14px; }
.stat dt, .stat-note { font-size: 0.75rem; color: var(--muted); } .stat dd { margin: 0; }
.stat-value { font-size: 1.25rem; font-weight: 700; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 0.8125rem; } .scroll-x { overflow-x: auto; }
th { text-align: right; font-size: 0.75rem; color: var(--muted); } td { text-align: right; }
th, td { padding: 5px 8px; border-bottom: 1px solid var(--edge); } th:first-child, td:first-child { text-align: left; }
.samples { list-style: none; margin: 0; padding: 0; }
.sample-row { padding: 10px 0; border-bottom: 1px solid var(--edge); }
.sample-step { font-size: 0.75rem; font-weight: 700; color: var(--muted); }
.sample { font: 0.8125rem/1.55 ui-monospace, Menlo, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.sample .prompt { color: var(--muted); }
code { font-family: ui-monospace, Menlo, monospace; font-size: 0.8125rem; overflow-wrap: anywhere; }
.notice { border-left: 3px solid var(--muted); padding: 6px 12px; background: var(--ground); border-radius: 6px; }
"""


def report_html(view: RunView, *, letters: str = "") -> str:
    """The whole page. Everything that a visitor or a model wrote is escaped.

    letters: the letters of a link that repeats the run, see playground.links; empty for none.
    """
    title = html.escape(view.name)
    sections = [
        _section("How it learned", _curve(view)),
        _section("What it wrote", watch.samples(view)) if view.history.samples else "",
        _section("Its settings", _settings(view)),
        _section("To repeat it", _repeat(view, letters)) if letters else "",
    ]
    message = f'<p class="notice">{html.escape(view.message)}</p>' if view.message else ""
    cards = theme.stat_cards(watch.cards(view)) if view.history.val_loss is not None else ""
    on = f" on {html.escape(view.corpus)}" if view.corpus and view.corpus not in view.name else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>{_STYLE}</style></head><body><main>
<h1>{title}</h1><p class="note">A run of Transformer Playground{on}: {in_steps(view.history.last_step)}.</p>
{message}{cards}{"".join(sections)}
</main></body></html>
"""


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{''.join(parts)}</section>"


def _curve(view: RunView) -> str:
    _, words = watch.curve(view)
    rungs = view.baselines.losses() if view.baselines else ()
    drawn = curve_svg(watch.as_run(view), rungs, words=words, log_y=bool(rungs) and view.baselines.low_floor)
    return f'<div class="picture">{drawn}</div><p class="note">{html.escape(words)}</p>'


def _settings(view: RunView) -> str:
    settings = dict(view.settings) or (view.config.to_dict() if view.config else {})
    settings |= {"device": view.device} if view.device else {}
    rows = [(setting_name(name), setting_shown(name, value)) for name, value in settings.items()]
    return theme.table(("setting", "value"), rows)


def _repeat(view: RunView, letters: str) -> str:
    words = (
        "Open the page with this at the end of its address and press Train. It says whether the losses are the same:"
    )
    return f"<p>{html.escape(words)}</p><p><code>?run={html.escape(letters)}</code></p>"
