"""Take it with you: the chosen model as a zip or for Transformers, its history and report; models from elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ....service.limits import Limits
from ....service.views import RunView
from ....storage import Checkpoint
from ....storage.archive import file_name, pack, pack_folder
from ....storage.opening import load_archive
from ....storage.transformers_export import export
from ....storage.transformers_families import family_for
from ....training import History
from ....words.card import exported_card, model_card, parity_in_words
from ... import theme
from ...forms.followed import uploaded
from ...made_files import made
from ...page import Page
from ...panel import Asked, Shown, Slot, slot
from ...refusals import sentence
from ...selected import Selected
from ...theme import quiet
from .linked import run_letters
from .report import report_html

Make = Callable[[str, str, Path], tuple[Path, str]]
"""(visitor, model id, empty folder) → the file made there, and a sentence about it."""

_COMPARING = "Writing it down, reading it back and comparing: some seconds …"


class Selection(Selected):
    """What the browser keeps of the panel."""

    model: str = ""
    said: str = ""
    """What was made of this model last."""
    brought: str = ""
    """Which model was taken in last."""
    exports: bool = True
    """Whether Transformers has a home for this model."""


def _button(name: str, label: str, waits: str = "Making the file …", **attributes: str) -> str:
    more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return (
        f'<button type="button" class="ghost" id="take-{name}" data-do="take_{name}" data-waits="{waits}"{more}>'
        f"{label}</button>"
    )


def template(limits: Limits) -> str:
    """What stands in the panel."""
    words = (
        "A zip that was made here, or the zipped folder of a small GPT-2, Llama, Mixtral or Qwen3 saved by "
        f"Transformers, of at most {limits.archive_bytes / 1e6:.0f} MB. Only you will see it."
    )
    return f"""<div class="line" id="take-away">{_button("model", "Model (zip)")}{_button("history", "History (CSV)")}
{_button("report", "Report (HTML)")}{_button("transformers", "For Transformers", _COMPARING, data_if="exports")}</div>
{slot("said", id="take-said")}{slot("why", id="take-why")}
{slot("problem", tag="p", class_="notice notice-error", role="alert")}
{theme.heading("Bring a model", words)}
<input type="file" accept=".zip" aria-label="A model as a zip" id="take-upload" data-upload="take_in">
{slot("brought", id="take-uploaded")}"""


def build(page: Page, view_of: Callable[[str, str | None], RunView | None]) -> None:
    """Lay it out where it is called, and wire it up; `view_of(visitor, model id)` is what there is to show."""

    def pack_model(visitor: str, model_id: str, folder: Path) -> tuple[Path, str]:
        checkpoint = page.registry.get(model_id, visitor)
        path = pack(checkpoint, folder / f"{file_name(checkpoint.name)}.zip", card=model_card(checkpoint))
        return (
            path,
            f"{checkpoint.name}: a zip of {path.stat().st_size / 1e6:.1f} MB. Upload it here or on another page.",
        )

    def write_history(visitor: str, model_id: str, folder: Path) -> tuple[Path, str]:
        view = _view(view_of, visitor, model_id)
        if not view.history.last_step:
            raise ValueError("This model came without a history: there is nothing to write down.")
        path = folder / f"{file_name(view.name)}.csv"
        path.write_text(view.history.to_csv(), encoding="utf-8")
        return path, f"{view.name}: {_lines_in_words(view.history)}."

    def write_report(visitor: str, model_id: str, folder: Path) -> tuple[Path, str]:
        view = _view(view_of, visitor, model_id)
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

    for name, make in (
        ("model", pack_model),
        ("history", write_history),
        ("report", write_report),
        ("transformers", pack_export),
    ):
        page.panels.act(f"take_{name}", giving(make), slow=True)

    def take_in(asked: Asked) -> dict[str, Any]:
        path = uploaded({"path": asked.selection.get("path")})
        if path is None:
            raise ValueError("There is no such file here. Choose it again.")
        checkpoint = received(Path(path), page)
        model_id = page.registry.add(asked.visitor, checkpoint, share=page.share_of(asked.request, asked.visitor))
        words = f"{checkpoint.name} is here, {checkpoint.config.n_parameters:,} parameters. All tabs show it."
        return {"move": {"brought": words}, "choose": model_id}

    page.panels.act("take_in", take_in, slow=True)

    def show(asked: Asked) -> Shown:
        chosen = Selection.read(asked.selection)
        reason = _why_no_export(page, asked.visitor, chosen.model)
        slots = {
            "said": Slot(chosen.said, lambda: chosen.said and quiet(chosen.said)),
            "why": Slot(reason, lambda: reason),
            "brought": Slot(chosen.brought, lambda: chosen.brought and theme.notice(chosen.brought, "good")),
        }
        return Shown(chosen.moved(exports=not reason).to_dict(), slots)

    page.panels.add(
        "take", show, template(page.limits), start=Selection().to_dict(), of_model="said", elem_id="take-panel"
    )


def received(path: Path, page: Page) -> Checkpoint:
    """The model of an uploaded zip, within this place's limits, under a name that tells where it came from.

    The file stays: gradio stores uploads by what they hold, so whoever sends the same one is given the same path, and
    it clears away old ones itself. Raises ValueError.
    """
    limits = page.limits
    if path.suffix.lower() != ".zip":
        raise ValueError("Upload a zip file: the one that “Model (zip)” makes, or a zipped folder.")
    if path.stat().st_size > limits.archive_bytes:
        raise ValueError(
            f"The zip has {path.stat().st_size / 1e6:.1f} MB; {limits.where} takes at most "
            f"{limits.archive_bytes / 1e6:.0f} MB."
        )
    checkpoint = load_archive(path, max_bytes=limits.archive_bytes, check=limits.check_model)
    name = path.stem[:60] if checkpoint.name == "model" else checkpoint.name
    return dataclasses.replace(checkpoint, name=f"{name} (uploaded)")


def giving(make: Make) -> Callable[[Asked], dict[str, Any]]:
    """What a button does that makes a file: the browser saves it from its link."""

    def give(asked: Asked) -> dict[str, Any]:
        link, words = made(lambda folder: make(asked.visitor, str(asked.selection.get("model") or ""), folder))
        return {"saves": link, "move": {"said": sentence(words)}}

    return give


def _lines_in_words(history: History) -> str:
    """What lines its CSV has: files keep about 400 steps of a run."""
    kept, made = len(history.steps["step"]), history.last_step
    if kept < made:
        return f"a line for each of {kept:,} of its {made:,} steps and for each of its evaluations"
    return "one line per step, with the losses of its evaluations"


def _view(view_of: Callable, visitor: str, model_id: str) -> RunView:
    view = view_of(visitor, model_id)
    if view is None:
        raise ValueError("No model is chosen: train one, or choose one at the top of the page.")
    return view


def _why_no_export(page: Page, visitor: str | None, model_id: str | None) -> str:
    """Why the chosen model cannot be exported to Transformers, as HTML; empty if it can."""
    try:
        family_for(page.registry.get(model_id, visitor).config)
    except ValueError as problem:
        return quiet(
            f"Can’t export to Transformers: {problem}. Train Tiny, Small or Medium as they are, or change that under "
            "Advanced."
        )
    return ""
