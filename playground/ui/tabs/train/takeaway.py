"""Take it with you: the chosen model as a zip or for Transformers, and a report of its run; models from elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ....service.views import RunView
from ....storage import Checkpoint
from ....storage.archive import file_name, pack, pack_folder
from ....storage.opening import load_archive
from ....storage.transformers_export import export
from ....words.card import exported_card, model_card, parity_in_words
from ... import theme
from ...forms.followed import uploaded
from ...made_files import made
from ...page import Page
from ...panel import Asked, Shown, Slot, deed_button, slot
from ...refusals import sentence
from ...selected import Selected
from ...theme import quiet
from . import hub
from .linked import run_letters
from .report import report_html

BUTTONS = {
    "model": ("Model (zip)", "Packing …"),
    "report": ("Report (HTML)", "Writing …"),
    "transformers": ("For Transformers", "Writing and comparing …"),
}
"""File → its button's label, and the label while the file is made."""


class Selection(Selected):
    """All that the browser keeps of this panel."""

    model: str = ""
    take: bool = False
    """Whether it is unfolded."""


def build(page: Page, view_of: Callable[[str, str | None], RunView | None]) -> None:
    """Add the panel to the layout; `view_of(visitor, model id)` gives the run to show."""
    page.panels.add("take", show, template(page), start=Selection().to_dict(), elem_id="take-panel")
    for name, make in files(page, view_of).items():
        page.panels.act(f"take_{name}", _giving(make), slow=True)
    page.panels.act("bring_model", lambda asked: bring(page, asked), slow=True)
    hub.build(page)


def template(page: Page) -> str:
    """The template. Everything starts folded."""
    words = (
        "A zip from this page, or the zipped folder of a small GPT-2, Llama, Mixtral or Qwen3 from Transformers. "
        f"At most {page.limits.archive_bytes / 1e6:.0f} MB. Only you will see it."
    )
    buttons = "".join(
        deed_button(label, f"take_{name}", id=f"take-{name}", data_waits=waits)
        for name, (label, waits) in BUTTONS.items()
    )
    return (
        '<details class="fold" id="take" data-fold="take"><summary>Take it with you</summary>'
        f'<div class="stack"><div class="line">{buttons}</div>{slot("said")}'
        f"{slot('problem', tag='p', class_='notice notice-error', role='alert')}"
        f'{theme.heading("Bring a model", words)}<input type="file" id="take-upload" accept=".zip" '
        f'data-upload="bring_model" aria-label="A model as a zip">{slot("brought")}{hub.template()}</div></details>'
    )


def show(asked: Asked) -> Shown:
    """The view: a message about another model is removed with it."""
    chosen = Selection.read(asked.selection)
    return Shown(chosen.to_dict(), {name: Slot(chosen.model, lambda: "") for name in ("said", "pushed")})


Make = Callable[[str, str, Path], tuple[Path, str]]
"""(visitor, model id, empty folder) → the file made there, and a sentence about it."""


def files(page: Page, view_of: Callable[[str, str | None], RunView | None]) -> dict[str, Make]:
    """The functions that make the file for each of BUTTONS. They raise ValueError."""

    def pack_model(visitor: str, model_id: str, folder: Path) -> tuple[Path, str]:
        checkpoint = page.registry.get(model_id, visitor)
        path = pack(checkpoint, folder / f"{file_name(checkpoint.name)}.zip", card=model_card(checkpoint))
        size = path.stat().st_size / 1e6
        return path, f"{checkpoint.name}: a zip of {size:.1f} MB. Upload it here or on another page."

    def write_report(visitor: str, model_id: str, folder: Path) -> tuple[Path, str]:
        view = view_of(visitor, model_id)
        if view is None:
            raise ValueError("No model is chosen: train one, or choose one at the top of the page.")
        job = page.board.find(visitor, model_id)
        path = folder / f"{file_name(view.name)}.html"
        path.write_text(report_html(view, letters=run_letters(view, job.spec if job else None)), encoding="utf-8")
        return path, f"{view.name}: one page that needs no network. Print it, mail it, keep it."

    def pack_export(visitor: str, model_id: str, folder: Path) -> tuple[Path, str]:
        checkpoint = page.registry.get(model_id, visitor)
        name = file_name(checkpoint.name)
        parity = export(checkpoint, folder / "export", card=exported_card)
        path = pack_folder(folder / "export", folder / f"{name}-transformers.zip", inside=name)
        return path, (
            f"{checkpoint.name} for Transformers, {parity_in_words(parity)}. "
            f"Unzip it, then AutoModelForCausalLM.from_pretrained({name!r})."
        )

    return {"model": pack_model, "report": write_report, "transformers": pack_export}


def _giving(make: Make) -> Callable[[Asked], dict[str, Any]]:
    """A button that makes a file and has the browser save it."""

    def give(asked: Asked) -> dict[str, Any]:
        model_id = asked.selection.get("model")
        link, words = made(lambda folder: make(asked.visitor, model_id, folder))
        return {"save": link, "shows": {"said": quiet(sentence(words))}}

    return give


def bring(page: Page, asked: Asked) -> dict[str, Any]:
    """Import an uploaded zip: its model becomes the visitor's, and is selected. Raises ValueError."""
    path = uploaded(asked.selection.get("file"))
    if path is None:
        raise ValueError("This file no longer exists: upload it again.")
    checkpoint = received(Path(path), page)
    model_id = page.registry.add(asked.visitor, checkpoint, share=page.share_of(asked.request, asked.visitor))
    words = f"{checkpoint.name} is here, {checkpoint.config.n_parameters:,} parameters. All tabs show it."
    return {"choose": model_id, "shows": {"brought": theme.notice(words, "good")}}


def received(path: Path, page: Page) -> Checkpoint:
    """The model in an uploaded zip, within this server's limits, with “(uploaded)” after its name.

    The file stays: gradio names uploads by their contents, so equal files share a path, and it deletes old ones
    itself. Raises ValueError.
    """
    checkpoint = load_archive(path, max_bytes=page.limits.archive_bytes, check=page.limits.check_model)
    name = path.stem[:60] if checkpoint.name == "model" else checkpoint.name
    return dataclasses.replace(checkpoint, name=f"{name} (uploaded)")
