"""Whether each fix still has its place in gradio: checked whenever the page starts (written for gradio 6.31)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import gradio as gr

from .small_sessions import PLAIN

FRONTEND = Path(gr.__file__).parent / "templates" / "frontend"
CLOCK = re.compile(r"\(\)=>\{\w+\(\w+,\(performance\.now\(\)-[^}]+\)/1e3\)")
"""In gradio's script, what clock.js keeps from counting."""
PLACES: Mapping[str, tuple[object, tuple[str, ...]]] = {
    "blocks.py": (gr.Blocks, ("postprocess_data",)),
    "quiet_refusals.py": (gr.Blocks, ("process_api", "preprocess_data")),
    "small_sessions.py": (PLAIN, ("_update_config", "_update_value_in_config")),
    "lenient.py": (gr.Dropdown, ("preprocess", "_warn_if_invalid_choice")),
}
"""Fix → what it changes, and the names of gradio's that it relies on."""
QUEUE = ("sleep_when_free", "progress_update_sleep_when_free", "compute_analytics_summary")


def out_of_place(app: gr.Blocks) -> list[str]:
    """A line for every fix that does not apply to this release of gradio."""
    missing = {fix: [name for name in names if not hasattr(thing, name)] for fix, (thing, names) in PLACES.items()}
    missing["blocks.py"] += [name for name in QUEUE if not hasattr(app._queue, name)]
    index = (FRONTEND / "index.html").read_text(encoding="utf-8")
    missing["first_script.py"] = [] if "<head>" in index else ["<head>"]
    signs = (file.read_text(encoding="utf-8") for file in FRONTEND.glob("assets/statustracker-*.js"))
    missing["../front/clock.js"] = [] if any(map(CLOCK.search, signs)) else ["the clock of its loading sign"]
    return [
        f"gradio_fixes/{fix} does not apply to gradio {gr.__version__}, which lacks {', '.join(names)}."
        for fix, names in missing.items()
        if names
    ]
