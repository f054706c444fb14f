"""Turns: what one visitor asks is answered in the order of asking, and beside what all others ask.

Gradio's `concurrency_id` is one line for all visitors, and without one a late answer overwrites a newer one. Here every
open page has its own order:

    turns = Turns("my-view")                 # in the layout; the element that shows that something is computed

    def asked(question: Question) -> Callable[[], dict]:
        ...                                  # in the order of the clicks: what does this one change?
        return lambda: {chart: show(...)}    # beside other clicks: the drawing, in a worker's thread

    turns.on(button.click, asked, {prompt, slider}, [chart])

The first half runs one click after another, the second as many at a time as processors allow. An answer older than the
one drawn last is dropped. What a click changed before the page could know of it (a place, a list) stands in the next
one's values (`tell`); what a dropped answer would have drawn is owed by the next (`owe`).
"""

from __future__ import annotations

import asyncio
import contextvars
import html
import logging
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ...devices import processors
from ...kept import Kept
from ...service.limits import PAGES
from ..page import UNSEEN
from ..refusals import sentence

AT_ONCE = 3
"""Answers worked on at the same time for one page: a slow one does not hold up the click after it."""

_log = logging.getLogger(__name__)
_cores = processors()
# torch lets go of the interpreter while it multiplies; slow work has threads of its own, so that clicks find one free
QUICK = ThreadPoolExecutor(_cores + 2, thread_name_prefix="look")
SLOW = ThreadPoolExecutor(max(_cores, 2), thread_name_prefix="slow-look")

# the page's clock goes along with the question, and comes back with the answer: what is newer is being computed
_ASK = """(...values) => {
  const box = document.getElementById(PLACE), now = performance.now();
  values[INDEX] = now;
  if (box) { box.dataset.asked = now; box.setAttribute("aria-busy", "true"); }
  return values;
}"""
_ANSWERED = """const heard = () => {
  const box = document.getElementById(PLACE);
  if (box && Number(props.value) >= Number(box.dataset.asked ?? 0)) box.removeAttribute("aria-busy");
};
watch("value", heard);
heard();"""


@dataclass
class Question:
    """One click, as a handler's first half gets it."""

    values: dict[Any, Any]
    """Its inputs, with what clicks before it have changed."""
    event: gr.EventData | None = None
    request: gr.Request | None = None
    page: _Page = field(default_factory=lambda: _Page())
    turn: int = 0
    told: dict[Any, Any] = field(default_factory=dict)
    owed: list[Hashable] = field(default_factory=list)

    def tell(self, values: dict[Any, Any]) -> None:
        """This click gives these components these values, which the page learns of by the answer."""
        self.told |= values

    def owe(self, things: Iterable[Hashable]) -> list[Hashable]:
        """All that has to be drawn: these, and what clicks before were not answered with."""
        self.owed += things
        return list(dict.fromkeys([*self.page.owed, *self.owed]))

    @property
    def unheard(self) -> dict[Any, Any]:
        """Values that this click and those before it gave, of which the page may not know."""
        return {component: told.value for component, told in self.page.told.items()} | self.told

    @property
    def stale(self) -> bool:
        """Whether something newer was asked of the drawing."""
        return self.page.drawing > self.turn


class Slow:
    """A second half that takes long: it has threads of its own, so that quick ones need not wait for it."""

    def __init__(self, draw: Callable[[], dict]):
        self.draw = draw

    def __call__(self) -> dict:
        return self.draw()


@dataclass
class _Page:
    """What is known of one open page."""

    told: dict[Any, _Told] = field(default_factory=dict)
    """Component → the value that a click gave it, as long as the page may not know of it."""
    owed: dict[Hashable, int] = field(default_factory=dict)
    """What has to be drawn → the turn that asked for it last."""
    passed: float = 0.0
    """The latest clock of the page's among questions that another's answer stands for."""
    clock: float = 0.0
    """The clock that the last answer carried: each carries a later one."""
    asked: int = 0
    drawing: int = 0
    """The newest turn that draws."""
    drawn: int = 0
    """The newest turn whose drawing has left."""
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    sending: asyncio.Task | None = None


@dataclass
class _Told:
    value: Any
    turn: int
    clock: float | None = None
    """The page's clock of the answer that carried it; None before there was one."""


Handler = Callable[[Question], Callable[[], dict[Any, Any]]]


class Turns:
    """The order of each page's clicks, for one part of the layout."""

    def __init__(self, place: str):
        """`place`: the id of the element that has `aria-busy` while a newer answer is awaited."""
        self.place = place
        self.asked = gr.Textbox(visible=False)
        # 'change' is named for gr.HTML, which looks up the events of a component in this text
        self.answered = gr.HTML(
            "",
            html_template="<span></span>",
            js_on_load=_ANSWERED.replace("PLACE", repr(place)),
            apply_default_css=False,
            padding=False,
            visible="hidden",
        )
        self._pages = Kept(entries=PAGES)

    def on(
        self,
        event: Any,
        handler: Handler,
        inputs: Iterable[Any],
        outputs: Iterable[Any],
        *,
        of: Any = None,
        draws: bool = True,
    ) -> Any:
        """On this event answer with `handler`. ValueErrors of either half are said in a corner of the page.

        Args:
            of: the component that the visitor changed: its value is what it says, whatever clicks before did to it.
            draws: False for an answer of its own beside the drawing, such as a sum that takes seconds: nothing newer
                stands in for it, so it is not dropped. Its handler looks whether the question is `stale`.
        """
        inputs = sorted({*inputs, self.asked, self.answered}, key=lambda component: component._id)
        outputs = list(dict.fromkeys([*outputs, self.answered]))

        async def answer(values: dict, event: gr.EventData, request: gr.Request) -> Any:
            return await self._answer(handler, values, event, request, of=of, draws=draws)

        ask = _ASK.replace("PLACE", repr(self.place)).replace("INDEX", str(inputs.index(self.asked)))
        quick = {"concurrency_limit": None, "trigger_mode": "always_last", **UNSEEN}
        return event(answer, set(inputs), outputs, js=ask, **quick)

    def calls(
        self, event: Any, handler: Callable[..., Any], inputs: list, outputs: list, *, slow: bool = False, **more: Any
    ) -> Any:
        """On this event call `handler(*inputs)`, which answers as a handler of gradio's does."""

        def ask(question: Question) -> Callable[[], dict]:
            def draw() -> dict:
                return by_component(handler(*(question.values[component] for component in inputs)), outputs)

            return Slow(draw) if slow else draw

        return self.on(event, ask, inputs, outputs, **more)

    async def _answer(
        self, handler: Handler, values: dict, event: gr.EventData, request: gr.Request, *, of: Any, draws: bool
    ) -> Any:
        page = self._page(request)
        page.asked += 1  # the order in which gradio calls us, which is that in which clicks arrive
        turn, clock = page.asked, _clock(values.pop(self.asked, None))
        if draws:
            page.drawing = turn
        updates: dict[Any, Any] = {}
        try:
            async with page.order:
                _overlay(page, values, _clock(values.pop(self.answered, None)), of)
                question = Question(values, event, request, page, turn)
                question.tell({of: values[of]} if of in values else {})  # an answer under way would put it back
                draw = await _in_thread(QUICK, handler, question)
                page.told |= {component: _Told(value, turn) for component, value in question.told.items()}
                page.owed |= dict.fromkeys(question.owed, turn)
            async with page.room:
                if draws and question.stale:  # the newer one draws what is owed as well
                    page.passed = max(page.passed, clock)  # and its click may be older: requests overtake each other
                    return gr.skip()
                updates = await _in_thread(SLOW if isinstance(draw, Slow) else QUICK, draw)
        except (ValueError, gr.Error) as problem:
            words = sentence(getattr(problem, "message", str(problem)))
            gr.Warning(html.escape(words, quote=False), duration=12, title="Not possible")
            draws = False
        except Exception:  # ours; the page must not wait for an answer that never comes
            _log.exception("A question of the page ended in an error")
            gr.Warning("Something went wrong while this was computed: try something else.", title="Error")
            draws = False
        if not await _next_to_leave(page, turn, draws):
            if clock <= page.clock:
                return gr.skip()
            updates = {}  # but the page waits: the click was later than the one that came here last, and has left
        page.clock = max(clock, page.passed, page.clock + 0.001)
        for component in updates.keys() & page.told.keys():
            if page.told[component].turn <= turn:  # else this answer was drawn before it was told
                page.told[component].clock = page.clock
        return {**updates, self.answered: str(page.clock)}

    def _page(self, request: Any) -> _Page:
        session = getattr(request, "session_hash", None)
        return self._pages.get(session, _Page) if session else _Page()


def by_component(answer: Any, outputs: list) -> dict[Any, Any]:
    """What a handler answered, by component: gradio lets it give all outputs in their order, some by name, or none."""
    if isinstance(answer, dict) and all(isinstance(key, gr.blocks.Block) for key in answer):
        return answer
    if isinstance(answer, dict) and answer == gr.skip():
        return {}
    return dict(zip(outputs, answer if len(outputs) > 1 else [answer]))


def _overlay(page: _Page, values: dict, answered: float, of: Any) -> None:
    """Put what clicks have changed over values that the page sent before it heard of that."""
    for component, told in list(page.told.items()):
        if component is of or (told.clock is not None and told.clock <= answered):
            del page.told[component]
        elif component in values:
            values[component] = told.value


async def _next_to_leave(page: _Page, turn: int, draws: bool) -> bool:
    """Wait until the answer before has left for the page; False where a newer one was there first.

    An answer is on its way when the task in which gradio called its handler has ended: only then is the next one let
    go, for gradio works on every answer for some moments yet.
    """
    me = asyncio.current_task()
    while page.sending not in (None, me) and not page.sending.done():
        await asyncio.wait([page.sending])
    if draws and turn < page.drawn:
        return False
    page.sending = me
    if draws:
        page.drawn = turn
        page.owed = {thing: asked for thing, asked in page.owed.items() if asked > turn}
    return True


async def _in_thread(pool: ThreadPoolExecutor, work: Callable, *arguments: Any) -> Any:
    context = contextvars.copy_context()  # by which gradio knows that components made in a handler are updates
    return await asyncio.get_running_loop().run_in_executor(pool, lambda: context.run(work, *arguments))


def _clock(sent: Any) -> float:
    """The page's clock as it sent it, in milliseconds; 0 for anything else."""
    try:
        return float(sent) if abs(float(sent)) < 1e15 else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0
