"""Whether each fix still has its place in gradio: checked whenever the page starts (written for gradio 6.31)."""

from __future__ import annotations

from collections.abc import Mapping

import gradio as gr
from gradio import component_meta

from .mended_scripts import FOLDER, not_mended
from .small_sessions import PLAIN

PLACES: Mapping[str, tuple[object, tuple[str, ...]]] = {
    "skipped_outputs.py": (gr.Blocks, ("postprocess_data",)),
    "quiet_refusals.py": (gr.Blocks, ("process_api", "preprocess_data", "call_function")),
    "small_sessions.py": (PLAIN, ("__setitem__", "_update_config", "_update_value_in_config")),
    "lenient.py": (gr.Dropdown, ("preprocess", "_warn_if_invalid_choice")),
    "quick_import.py": (component_meta, ("create_or_modify_pyi",)),
}
"""Fix → what it changes, and the names of gradio's that it relies on."""
QUEUE = ("sleep_when_free", "progress_update_sleep_when_free", "compute_analytics_summary", "ANALYTICS_MAX_EVENTS")


def out_of_place(app: gr.Blocks) -> list[str]:
    """A line for every fix that does not apply to this release of gradio."""
    places = {**PLACES, "slow_queue.py": (app._queue, QUEUE)}
    missing = {fix: [name for name in names if not hasattr(thing, name)] for fix, (thing, names) in places.items()}
    missing["mended_scripts.py"] = [f"the place of “{what}”" for what in not_mended()]
    index = (FOLDER.parent / "index.html").read_text(encoding="utf-8")
    missing["first_script.py"] = [] if "<head>" in index else ["<head>"]
    return [
        f"gradio_fixes/{fix} does not apply to gradio {gr.__version__}, which lacks {', '.join(names)}."
        for fix, names in missing.items()
        if names
    ]
