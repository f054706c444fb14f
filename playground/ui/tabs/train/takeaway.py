"""Take it with you: the chosen model as a zip or for Transformers, its history and report; models from elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from ....service.views import RunView
from ....storage import Checkpoint
from ....storage.archive import file_name, pack, pack_folder
from ....storage.opening import load_archive
from ....storage.transformers_export import export
from ....storage.transformers_families import family_for
from ....training import History
from ....words.card import exported_card, model_card, parity_in_words
from ... import theme
from ...made_files import made
from ...page import QUIETLY, UNSEEN, Page
from ...refusals import in_words, sentence
from ...theme import quiet
from .linked import run_letters
from .report import report_html

# for handlers that write or read files: the queue shows that they work
_WORKING = {"concurrency_limit": 2, "concurrency_id": "files", "trigger_mode": "once", **UNSEEN}
_SAVE = """(address) => {
  if (!address) return;
  const link = document.createElement('a');
  link.href = address; link.download = decodeURIComponent(address.split('/').pop());
  document.body.append(link); link.click(); link.remove();
}"""
_FIRST_WORDS = ""

Make = Callable[[str, str, Path], tuple[Path, str]]
"""(visitor, model id, empty folder) → the file made there, and a sentence about it."""


def build(page: Page, view_of: Callable[[str, str | None], RunView | None]) -> None:
    """Lay it out where it is called, and wire it up; `view_of(visitor, model id)` is what there is to show."""
    with gr.Row(elem_id="take-away"):
        model, history, report, transformers = (
            gr.Button(label, size="md", min_width=130, elem_id=f"take-{name}")
            for name, label in (
                ("model", "Model (zip)"),
                ("history", "History (CSV)"),
                ("report", "Report (HTML)"),
                ("transformers", "For Transformers"),
            )
        )
    said = gr.HTML(quiet(_FIRST_WORDS), padding=False, elem_id="take-said")
    why_not = gr.HTML(_why_no_export(page, None, page.registry.default), padding=False, elem_id="take-why")
    link = gr.Textbox(visible=False)
    words = (
        "A zip from this page, or the zipped folder of a small GPT-2, Llama, Mixtral or Qwen3 from Transformers. "
        f"At most {page.limits.archive_bytes / 1e6:.0f} MB. Only you will see it."
    )
    gr.HTML(theme.heading("Bring a model", words), padding=False)
    upload = gr.File(label="A model as a zip", show_label=False, file_types=[".zip"], height=132, elem_id="take-upload")
    uploaded = gr.HTML(padding=False, elem_id="take-uploaded")

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

    chosen = [page.visitor, page.model]
    for button, give in (
        (model, _giving(pack_model)),
        (history, _giving(write_history)),
        (report, _giving(write_report)),
        (transformers, _giving(pack_export, "Writing it down, reading it back and comparing: some seconds …")),
    ):
        button.click(give, chosen, [link, said], **_WORKING).success(None, link, None, js=_SAVE)

    def take_in(visitor: str, chosen_now: str, path: str | None, request: gr.Request) -> tuple[Any, ...]:
        if not path:
            return gr.skip(), gr.skip(), ""
        try:
            with in_words():
                visitor = page.known(visitor)
                checkpoint = received(Path(path), page)
                model_id = page.registry.add(visitor, checkpoint, share=page.share_of(request))
        except gr.Error as problem:
            return gr.skip(), None, theme.notice(str(problem.message), "error")
        words = f"{checkpoint.name} is here, {checkpoint.config.n_parameters:,} parameters. All tabs show it."
        return page.model_list(visitor, model_id), None, theme.notice(words, "good")

    upload.upload(take_in, [*chosen, upload], [page.model, upload, uploaded], **_WORKING)

    def about(visitor: str, model_id: str) -> tuple[Any, ...]:
        reason = _why_no_export(page, visitor, model_id)
        return quiet(_FIRST_WORDS), reason, gr.Button(interactive=not reason)

    page.model.change(about, chosen, [said, why_not, transformers], **QUIETLY)
    transformers.interactive = not why_not.value


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


def _giving(make: Make, waiting: str = "Making the file …") -> Callable[..., Iterator[tuple[Any, str]]]:
    """A handler that says it has begun, makes a file, and answers with its link."""

    def give(visitor: str, model_id: str) -> Iterator[tuple[Any, str]]:
        yield gr.skip(), quiet(waiting)
        try:
            with in_words():
                link, words = made(lambda folder: make(visitor, model_id, folder))
        except gr.Error:
            yield gr.skip(), quiet(_FIRST_WORDS)
            raise
        yield link, quiet(sentence(words))

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
            f"Can’t export to Transformers: {problem}. Train Tiny, Small or Medium unchanged, or change that under "
            "Advanced."
        )
    return ""
