"""The teacher's board: what every student does, live; for those alone who have the teacher's link."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from ...service.classes import ClassError, Classes, Klass, StoreError
from ...service.classes.speedrun import entries
from ...service.classes.tables import answers_csv, results_csv
from .. import theme
from ..chart import Chart
from ..page import QUIETLY, Page
from ..refusals import in_words
from ..where import asked_here
from . import picture

LOOK_SECONDS = 3.0
THINGS = (("the seed", "seed"), ("the size", "size"), ("the text", "text"))

_COPY = """(code, secret) => {
  const link = location.origin + location.pathname + '?class=' + code + (TEACHER ? '#teach=' + secret : '');
  const say = () => {
    const button = document.querySelector('#ID');
    button.dataset.said = 'Link copied';
    setTimeout(() => delete button.dataset.said, 2500);
  };
  navigator.clipboard && window.isSecureContext
    ? navigator.clipboard.writeText(link).then(say, () => window.prompt('Copy this link:', link))
    : window.prompt('Copy this link:', link);
}"""
# a file that only the browser writes: on the server it would outlive the class
_SAVE = """(text) => {
  if (!text) return;
  const {name, csv} = JSON.parse(text), link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([csv], {type: 'text/csv;charset=utf-8'}));
  link.download = name;
  document.body.append(link); link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}"""
# its code leaves the address, so that a reload does not look for it
_GONE = """() => {
  if (!document.querySelector('#class-head .class-head')) history.replaceState(null, '', location.pathname);
}"""
_SURE = """(sure, ...who) => [confirm('QUESTION') ? 'sure' : '', ...who]"""
_SURE_TO_DELETE = _SURE.replace(
    "QUESTION", "Delete this class with all names, runs and answers, for good? Save them as CSV first."
)
_SURE_TO_END = _SURE.replace("QUESTION", "End the class now? Nobody joins any more, and no further run is seen.")


def build(page: Page) -> dict[str, Any]:
    """What the board consists of, hidden from all who have no teacher's link."""
    b: dict[str, Any] = {}
    with gr.Column(visible=False, elem_id="class-board") as b["box"]:
        with gr.Column(elem_classes="card"):
            b["head"] = gr.HTML(padding=False, elem_id="class-head")
            with gr.Row(elem_id="class-links"):
                b["invite"] = gr.Button("Copy the students’ link", size="sm", min_width=150, scale=0,
                                        elem_id="copy-class", elem_classes="copy-link")  # fmt: skip
                b["teach"] = gr.Button("Copy the teacher’s link", size="sm", min_width=150, scale=0,
                                       elem_id="copy-teacher", elem_classes="copy-link")  # fmt: skip
                b["results"] = gr.Button("Results (CSV)", size="sm", min_width=110, scale=0, elem_id="class-results")
                b["answers"] = gr.Button("Answers (CSV)", size="sm", min_width=110, scale=0, elem_id="class-answers")
                b["end"] = gr.Button("End it now", size="sm", min_width=90, scale=0, elem_id="class-end")
                b["delete"] = gr.Button("Delete the class", size="sm", min_width=120, scale=0, elem_id="class-delete")
            words = "Keep the teacher’s link: it is the only way back to this board, and whoever has it is the teacher."
            gr.HTML(theme.quiet(words), padding=False)
        with gr.Column(elem_classes="card"):
            with gr.Row(equal_height=False):
                b["sort"] = gr.Radio([(title, name) for name, title in picture.SORTS.items()], value="joined",
                                     label="Sorted by", elem_classes="pills", min_width=280,
                                     elem_id="class-sort")  # fmt: skip
                b["hidden"] = gr.Checkbox(False, label="Hide the names", info="For a projector.", min_width=160,
                                          elem_id="class-hidden")  # fmt: skip
            b["table"] = gr.HTML(padding=False, elem_id="class-table")
        with gr.Row(equal_height=False):
            with gr.Column(min_width=320, elem_classes="card"):
                gr.HTML(theme.heading("All runs on one ladder", "The last of each student; the median is dotted."),
                        padding=False)  # fmt: skip
                b["curves"] = Chart(height=340, save_name="class-curves", elem_id="class-curves")
            with gr.Column(min_width=320, elem_classes="card"):
                words = (
                    "Complete runs that differ from the class’s in one thing: a dot each. The diamond is the mean of "
                    "several, its bar the 95 % interval, from three on."
                )
                gr.HTML(theme.heading("What one change does", words), padding=False)
                b["thing"] = gr.Radio(list(THINGS), value="seed", label="What was changed", elem_classes="pills",
                                      elem_id="class-thing")  # fmt: skip
                b["spread"] = Chart(height=340, save_name="class-spread", elem_id="class-spread")
        with gr.Column(elem_classes="card", visible=False, elem_id="class-speedrun") as b["race"]:
            gr.HTML(theme.heading("Speedrun"), padding=False)
            b["by"] = gr.Radio([("training FLOPs", "flops"), ("seconds on this machine", "seconds")], value="flops",
                               label="The least of", elem_classes="pills", elem_id="class-by")  # fmt: skip
            b["entries"] = gr.HTML(padding=False, elem_id="class-entries")
        gr.HTML('<p class="quiet-line"><a href="?">Back to the playground</a></p>', padding=False)
    b["seen"] = gr.Textbox("", visible=False)  # what was drawn
    b["file"] = gr.Textbox("", visible=False)
    b["sure"] = gr.Textbox("", visible=False)
    b["timer"] = gr.Timer(LOOK_SECONDS, active=False)
    return b


class Boards:
    """The handlers. Each checks the teacher's secret again."""

    def __init__(self, page: Page, classes: Classes, b: dict[str, Any], code: gr.Textbox, secret: gr.Textbox):
        self.page, self.classes, self.b, self.key = page, classes, b, [code, secret]
        self.drawn = [b[name] for name in ("head", "table", "curves", "spread", "entries", "seen")]

    @property
    def outputs(self) -> list[Any]:
        """All that opening the board changes."""
        b = self.b
        return [*self.drawn, *self.key, *(b[name] for name in ("box", "race", "thing", "timer"))]

    def connect(self) -> None:
        """Bind them."""
        b, key = self.b, self.key
        chosen = [*key, *(b[name] for name in ("sort", "hidden", "thing", "by", "seen"))]
        b["timer"].tick(self.look, chosen, [*self.drawn, b["timer"]], **QUIETLY)
        gr.on([b[name].input for name in ("sort", "hidden", "thing", "by")], self.look, chosen,
              [*self.drawn, b["timer"]], **QUIETLY)  # fmt: skip
        for name, teacher in (("invite", "false"), ("teach", "true")):
            js = _COPY.replace("TEACHER", teacher).replace("ID", b[name].elem_id)
            b[name].click(None, key, None, js=js, api_visibility="private")
        for name, table in (("results", results_csv), ("answers", answers_csv)):
            saved = b[name].click(self._saver(name, table), key, b["file"], **QUIETLY)
            saved.success(None, b["file"], None, js=_SAVE)
        gone = [b["head"], b["table"], b["curves"], b["spread"], b["entries"], b["seen"], b["timer"]]
        deleted = b["delete"].click(self.delete, [b["sure"], *key], gone, js=_SURE_TO_DELETE, **QUIETLY)
        deleted.success(None, b["head"], None, js=_GONE)
        b["end"].click(self.end, [b["sure"], *key], b["seen"], js=_SURE_TO_END, **QUIETLY)

    def open(self, code: Any, secret: Any, request: gr.Request) -> dict:
        """A page opens at a teacher's link."""
        klass, b = self.classes.taught(code, secret, self.page.reach.origin_of(request)), self.b
        thing = klass.changes or "seed"
        return self.draw(klass, "joined", False, thing, "flops", asked_here(request)) | {
            **dict(zip(self.key, (klass.code, secret))),
            b["box"]: gr.Column(visible=True), b["race"]: gr.Column(visible=klass.target is not None),
            b["thing"]: thing, b["timer"]: gr.Timer(active=True),
        }  # fmt: skip

    def look(
        self, code: Any, secret: Any, sort: Any, hidden: Any, thing: Any, by: Any, seen: Any, request: gr.Request
    ) -> dict:
        """A tick, or another choice: what is new."""
        try:
            klass = self.classes.taught(code, secret, self.page.reach.origin_of(request))
            if self._state(klass, sort, hidden, thing, by) == seen:
                return gr.skip()
            by = by if by in ("flops", "seconds") else "flops"
            return self.draw(klass, sort, hidden is True, thing, by, asked_here(request))
        except StoreError:
            return gr.skip()  # the file is busy for a moment
        except ClassError as problem:  # deleted, by another teacher perhaps
            return self._gone(str(problem))

    def draw(self, klass: Klass, sort: Any, hidden: bool, thing: Any, by: str, local: bool) -> dict:
        """The whole board."""
        b, students, now = self.b, self.classes.students(klass), self.classes.clock()
        thing = thing if thing in ("seed", "size", "text") else "seed"
        came = entries(self.classes, klass) if klass.target is not None else []
        return {
            b["head"]: picture.head_html(klass, students, now, local),
            b["table"]: picture.table_html(klass, students, sort, hidden, now),
            b["curves"]: picture.curves(klass, students, hidden),
            b["spread"]: picture.spread(klass, students, thing, hidden),
            b["entries"]: picture.speedrun_html(klass, students, came, by, hidden) if klass.target is not None else "",
            b["seen"]: self._state(klass, sort, hidden, thing, by),
        }

    def end(self, sure: Any, code: Any, secret: Any, request: gr.Request) -> Any:
        """Press End it now, and be sure; the next look shows it."""
        if sure != "sure":
            return gr.skip()
        with in_words():
            self.classes.end(self.classes.taught(code, secret, self.page.reach.origin_of(request)))
        return ""

    def delete(self, sure: Any, code: Any, secret: Any, request: gr.Request) -> Any:
        """Press Delete the class, and be sure."""
        if sure != "sure":
            return gr.skip()
        with in_words():
            self.classes.delete(self.classes.taught(code, secret, self.page.reach.origin_of(request)))
        return self._gone("The class is deleted, with everything that its students did in it.")

    def _gone(self, words: str) -> dict:
        b = self.b
        return {b["head"]: theme.notice(words), b["table"]: "", b["curves"]: None, b["spread"]: None, b["entries"]: "",
                b["seen"]: "", b["timer"]: gr.Timer(active=False)}  # fmt: skip

    def _saver(self, name: str, table: Any) -> Any:
        def save(code: Any, secret: Any, request: gr.Request) -> str:
            with in_words():
                klass = self.classes.taught(code, secret, self.page.reach.origin_of(request))
                return json.dumps({"name": f"class-{name}.csv", "csv": table(self.classes, klass)})

        return save

    def _state(self, klass: Klass, *chosen: Any) -> str:
        """What the board depends on; the minute, because it says how long something takes."""
        return repr((klass.id, klass.version, klass.ended, int(self.classes.clock() // 60), *map(str, chosen)))
