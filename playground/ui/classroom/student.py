"""A student of a class: joining, the strip above the tabs, the speedrun, leaving."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ...links import LinkError
from ...service.classes import ClassError, Classes, Member, StoreError
from ...service.classes.speedrun import Verifier, enter, entries
from ...service.limits import STUDENT_NAME
from .. import theme
from ..page import QUIETLY, Page
from ..refusals import in_words
from . import picture

LOOK_SECONDS = 10.0

# this browser has joined one, so that a later page asks for it, and a reload finds it; a lesson opens with a page
_JOINED = """(code, lesson) => {
  if (!code) return;
  try { localStorage.setItem('playground-class', 'joined'); } catch {}
  const words = new URLSearchParams(location.search);
  words.set('class', code);
  if (lesson && words.get('lesson') !== lesson) {
    words.set('lesson', lesson);
    location.assign(location.pathname + '?' + words);
  } else history.replaceState(null, '', location.pathname + '?' + words);
}"""
_SURE_TO_LEAVE = """(sure, ...who) => [
  confirm('Leave the class? Your name, your runs and your answers are deleted from it.') ? 'sure' : '', ...who
]"""
_LEFT = """(code) => {
  if (code) return;
  try { localStorage.removeItem('playground-class'); } catch {}
  const words = new URLSearchParams(location.search);
  words.delete('class');
  history.replaceState(null, '', location.pathname + (words.size ? '?' + words : ''));
}"""


def strip() -> dict[str, Any]:
    """What a student sees above the tabs; nothing for others. Returns its components by name."""
    s: dict[str, Any] = {}
    with gr.Column(visible=False, elem_classes="card quiet", elem_id="class-student") as s["box"]:
        s["said"] = gr.HTML(padding=False, elem_id="class-strip")
        with gr.Row(elem_id="class-student-buttons"):
            s["set"] = gr.Button("Set the controls", size="sm", min_width=120, scale=0, elem_id="class-set")
            s["enter"] = gr.Button("Enter the run shown", size="sm", min_width=140, scale=0, visible=False,
                                   elem_id="class-enter")  # fmt: skip
            s["leave"] = gr.Button("Leave the class", size="sm", min_width=120, scale=0, elem_id="class-leave")
    s["joined"] = gr.Textbox("", visible=False)  # the code of the class that this page shows
    s["lesson"] = gr.Textbox("", visible=False)  # and its lesson
    s["seen"] = gr.Textbox("", visible=False)  # what the strip was made of
    s["sure"] = gr.Textbox("", visible=False)
    s["timer"] = gr.Timer(LOOK_SECONDS, active=False)
    return s


def joining() -> dict[str, Any]:
    """The form to join with."""
    words = "With the code or the link that your teacher shows. The board there shows the name that you choose here."
    gr.HTML(theme.heading("Join a class", words), padding=False)
    j: dict[str, Any] = {"note": gr.HTML(padding=False, elem_id="class-note")}
    j["code"] = gr.Textbox(label="Code", placeholder="four words", max_lines=1, max_length=80, elem_id="class-code")
    j["name"] = gr.Textbox(label="Your name in the class", max_lines=1, max_length=STUDENT_NAME, elem_id="class-name")
    j["join"] = gr.Button("Join", size="md", elem_id="class-join")
    return j


class Students:
    """The handlers. Of a student nothing is kept here."""

    def __init__(self, page: Page, classes: Classes, verifier: Verifier, s: dict, j: dict, fold: gr.Accordion):
        self.page, self.classes, self.verifier, self.s, self.j, self.fold = page, classes, verifier, s, j, fold

    @property
    def outputs(self) -> list[Any]:
        """All that joining changes."""
        s, j = self.s, self.j
        strip = [s[name] for name in ("box", "said", "set", "enter", "leave", "joined", "lesson", "seen", "timer")]
        return [*strip, j["note"], j["code"], self.fold]

    def connect(self) -> None:
        """Bind them."""
        self.page.later(self._wire)

    def _wire(self) -> None:
        page, s, j = self.page, self.s, self.j
        self.form = page.shared("train.running").linked
        form = [*self.form.form_parts, page.tabs]
        joined = [page.visitor, j["code"], j["name"]]
        gr.on([j["join"].click, j["name"].submit, j["code"].submit], self.join, joined, [*self.outputs, *form],
              **QUIETLY).success(None, [s["joined"], s["lesson"]], None, js=_JOINED)  # fmt: skip
        s["set"].click(self.set_controls, page.visitor, form, **QUIETLY)
        s["enter"].click(self.enter, [page.visitor, page.model], [s["said"], s["seen"]], **QUIETLY)
        leave = s["leave"].click(self.leave, [s["sure"], page.visitor], self.outputs, js=_SURE_TO_LEAVE, **QUIETLY)
        leave.success(None, s["joined"], None, js=_LEFT)
        looked = [s[name] for name in ("box", "said", "set", "enter", "leave", "seen", "timer")]
        s["timer"].tick(self.look, [page.visitor, s["seen"]], [*looked, self.fold], **QUIETLY)

    # ---- what students press -----------------------------------------------------------------------------------------

    def open(self, visitor: Any, code: Any, address: str) -> dict:
        """A page opens at a class's link, or in a browser that joined one."""
        member = self.classes.member(visitor)
        if not code:
            return self.shown(member) if member else {self.j["note"]: ""}
        if member is not None and member.klass.code == code:
            return self.shown(member)
        try:
            klass = self.classes.invited(code, address)
        except (ClassError, StoreError) as problem:
            note = theme.notice(str(problem), "error")
            return {self.fold: gr.Accordion(open=True), self.j["note"]: note}
        note = theme.notice(f"You are invited to “{klass.title}”: choose a name and press Join.", "good")
        return {self.fold: gr.Accordion(open=True), self.j["note"]: note, self.j["code"]: klass.code}

    def join(self, visitor: Any, code: Any, name: Any, request: gr.Request) -> dict:
        """Press Join: everything is set up."""
        with in_words():
            member = self.classes.join(code, name, self.page.known(visitor), self.page.reach.origin_of(request))
            return self.shown(member) | self.controls(member)

    def set_controls(self, visitor: Any) -> dict:
        """Press Set the controls: the class's run again."""
        with in_words():
            return self.controls(self._member(visitor)) or gr.skip()

    def enter(self, visitor: Any, model_id: Any) -> dict:
        """Press Enter the run shown: it is put before the speedrun's board."""
        with in_words():
            member = self._member(visitor)
            enter(self.classes, member, self.page.board.find(visitor, model_id))
            self.verifier.wake()
            return self._said(self._member(visitor))

    def leave(self, sure: Any, visitor: Any) -> dict:
        """Press Leave the class, and be sure."""
        if sure != "sure":
            return gr.skip()
        with in_words():
            member = self.classes.member(visitor)
            if member is not None:
                self.classes.withdraw(member)
        s = self.s
        return {
            s["box"]: gr.Column(visible=False),
            **dict.fromkeys((s["joined"], s["lesson"], s["seen"], self.j["code"]), ""),
            s["timer"]: gr.Timer(active=False),
            self.fold: gr.Accordion(open=True, visible=True),
            self.j["note"]: theme.notice("You have left the class, and it knows nothing of you any more."),
        }

    def look(self, visitor: Any, seen: Any) -> dict:
        """A tick: what is new."""
        s = self.s
        try:
            member = self.classes.member(visitor)
            out = self._said(member) if member is not None else {}
        except StoreError:
            return gr.skip()  # the file is busy for a moment
        if member is None:
            gone = theme.notice("Your class is not there any more: its teacher deleted it, or it ended long ago.")
            return {
                s["said"]: gone,
                **dict.fromkeys((s["set"], s["enter"], s["leave"]), gr.Button(visible=False)),
                s["seen"]: "",
                s["timer"]: gr.Timer(active=False),
                self.fold: gr.Accordion(visible=True),
            }
        return gr.skip() if out[s["seen"]] == seen else out

    # ---- what they see -----------------------------------------------------------------------------------------------

    def shown(self, member: Member) -> dict:
        """The strip of a member, in place of the fold."""
        s = self.s
        return self._said(member) | {
            s["box"]: gr.Column(visible=True), s["joined"]: member.klass.code, s["lesson"]: member.klass.lesson,
            s["timer"]: gr.Timer(active=True),
            s["set"]: gr.Button(visible=bool(member.klass.letters)), s["leave"]: gr.Button(visible=True),
            s["enter"]: gr.Button(visible=member.klass.target is not None and not member.klass.ended),
            self.fold: gr.Accordion(open=False), self.j["note"]: "", self.j["code"]: "",
        }  # fmt: skip

    def controls(self, member: Member) -> dict:
        """The Train tab's form, set to the class's run; nothing where the class has none."""
        try:
            spec = member.klass.spec(member.number)
        except LinkError as problem:
            raise ClassError(f"The class's run cannot be set up here: {problem}.") from problem
        return {} if spec is None else self.form.restore(spec) | {self.page.tabs: self.page.open("train")}

    def _said(self, member: Member) -> dict:
        known = next((student for student in self.classes.students(member.klass) if student.id == member.id), None)
        mine = [entry for entry in entries(self.classes, member.klass) if entry.number == member.number]
        said = picture.strip_html(member, known, mine)
        return {self.s["said"]: said, self.s["seen"]: str(hash(said))}

    def _member(self, visitor: Any) -> Member:
        member = self.classes.member(self.page.known(visitor))
        if member is None:
            raise ClassError("Your class is not there any more.")
        return member
