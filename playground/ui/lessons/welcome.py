"""The greeting on a first visit: one sentence and three buttons, shown once per browser."""

from __future__ import annotations

import gradio as gr

from ...lessons.reading import all_lessons

# 'select' is named for gr.HTML, which finds a component's events in the script
_SHOW = """/* 'select' */ (() => {
  const SEEN = "transformer-playground-welcome", box = element.querySelector(".welcome");
  if (localStorage.getItem(SEEN) || new URLSearchParams(location.search).size) return; // a link leads somewhere
  localStorage.setItem(SEEN, "yes");
  box.hidden = false;
  const tab = (name) => document.getElementById(`tab-${name}-button`)?.click();
  const go = {
    lesson: () => document.querySelector("#lessons [data-lesson]").click(),
    train: () => {
      tab("train");
      [...document.querySelectorAll("#learn input")].at(-1)?.click(); // my own text
      document.getElementById("source")?.scrollIntoView({ block: "center" });
    },
    play: (tries = 200) => {
      if (tries === 200) tab("generate");
      const panel = document.querySelector("#generate-panel .panel")?.panel; // built when its tab is first opened
      if (!panel) return tries && setTimeout(() => go.play(tries - 1), 50);
      panel.move({ game: true });
      const fold = document.querySelector("#generate-panel [data-fold=game]");
      fold.open = true;
      fold.scrollIntoView();
    },
    close: () => {},
  };
  document.addEventListener("click", ({ target }) => { // another tab moves everything anyway
    if (target.closest("[role=tab]")) box.hidden = true;
    const wanted = target.closest(".welcome [data-go]")?.dataset.go;
    if (!wanted) return;
    box.hidden = true;
    go[wanted]();
  });
})();"""


def build() -> None:
    """Draw the greeting, hidden until the browser finds that it has never shown it."""
    first = all_lessons()[0]
    gr.HTML(
        None,
        html_template='<section class="welcome card" aria-label="Welcome" hidden>'
        "<p><b>Train a small language model, then look at every number inside it.</b></p>"
        f'<button type="button" class="ghost" data-go="lesson">Start lesson {first.number}</button>'
        '<button type="button" class="ghost" data-go="play">Play</button>'
        '<button type="button" class="ghost" data-go="train">Train your own</button>'
        '<button type="button" class="link" data-go="close" aria-label="Close">×</button></section>',
        js_on_load=_SHOW,
        apply_default_css=False,
        padding=False,
        elem_id="welcome",
    )
