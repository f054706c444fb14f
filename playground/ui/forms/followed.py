"""A form of Gradio components; one Python function updates it, whichever field is changed.

    form = Followed(page, "train_form", components, reads=("source", "size", …), sets=("outlook", …),
                    follow=follow, begin=begin)
    form.on("size", components["size"].input)               # follow(values, ["size"], asked) → Follows(fields, shows)
    form.begins(components["train"], panel="#train-panel")  # begin(values, asked) → Begins(id) or Begins(shows=…)

The browser's half is front/form.js: it sends what the fields hold and what was changed since the last answer. Only the
answer to the newest request counts, and what was typed meanwhile stays. None of Gradio's own events is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ..bodies import uploaded_file
from ..gradio_fixes.quiet_refusals import STRANGE
from ..page import UNSEEN, Page
from ..panel import Asked

Values = dict[str, Any]


@dataclass(frozen=True)
class Follows:
    """A form's new contents, by the names of its components."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Values for fields that follow; a field that the visitor has touched in the meantime keeps its own."""
    shows: Mapping[str, Any] = field(default_factory=dict)
    """Values or `gr.update(…)` for everything else."""


@dataclass(frozen=True)
class Begins:
    """The result of pressing the form's button."""

    begun: str = ""
    """The job's id; empty if none was begun."""
    shows: Mapping[str, Any] = field(default_factory=dict)
    """As in `Follows`."""


class Followed:
    """One form: the components that it reads and sets, and the function that updates it."""

    def __init__(
        self,
        page: Page,
        name: str,
        components: Mapping[str, gr.components.Component],
        *,
        reads: Sequence[str],
        sets: Sequence[str],
        follow: Callable[[Values, Sequence[str], Asked], Follows],
        begin: Callable[[Values, Asked], Begins],
    ):
        """`reads` and `sets` are names of components; `page.panels` answers the browser at /do/<name>."""
        self._reads, self._sets = [components[each] for each in reads], [components[each] for each in sets]
        self._by_name = dict(zip(reads, self._reads))
        self._follow, self._begin = follow, begin
        self._form = json.dumps({"name": name, "reads": reads, "sets": sets})
        self._name, self._components = name, components
        page.panels.act(name, self._answer)

    def on(self, cause: str, *events: Callable[..., Any], whole_texts: bool | str = False) -> None:
        """Call `follow` with this cause whenever one of these events happens.

        `whole_texts`: whether to send the pasted text because `follow` needs it, or the switch that decides this.
        """
        gr.on(list(events), None, self._reads, self._sets, js=self._touched(cause, whole_texts), **UNSEEN)

    def after(self, event: gr.events.Dependency, cause: str) -> None:
        """Call `follow` with this cause once this event is over, which filled the form in the meantime."""
        event.then(None, self._reads, self._sets, js=self._touched(cause, False), **UNSEEN)

    def _touched(self, cause: str, whole_texts: bool | str) -> str:
        said = f"{self._form}, {json.dumps(cause)}, {json.dumps(whole_texts)}"
        return f"(...now) => playground.form.touched({said}, now)"

    def begins(self, button: gr.Button, *, panel: str) -> None:
        """Let this button start what the form describes; on a phone, the page scrolls to the panel."""
        pressed = f"(...now) => playground.form.pressed({self._form}, {json.dumps(panel)}, now)"
        button.click(None, self._reads, self._sets, js=pressed, **UNSEEN)

    def filled_by(self, panel: gr.HTML, names: Sequence[str]) -> None:
        """Let the server's answers to this panel's buttons fill these components of the form: see `panel.Act`."""
        form = json.dumps({"name": self._name, "sets": names})
        outputs = [self._components[name] for name in names]
        panel.select(None, None, outputs, js=f"() => playground.form.filled({form})", **UNSEEN)

    def _answer(self, asked: Asked) -> dict[str, Any]:
        given, causes = asked.selection["values"], asked.selection.get("causes", [])
        if not isinstance(given, dict) or not isinstance(causes, list):
            raise ValueError(STRANGE)
        values = {name: held(component, given.get(name)) for name, component in self._by_name.items()}
        if asked.selection.get("pressed"):
            begun = self._begin(values, asked)
            return {"begun": begun.begun, "shows": dict(begun.shows)}
        followed = self._follow(values, [str(each) for each in causes], asked)
        return {"fields": dict(followed.fields), "shows": dict(followed.shows)}


def held(component: gr.components.Component, value: Any) -> Any:
    """A component's value as sent by a browser. Raises ValueError for a value that the component cannot hold.

    Numbers and lists are checked when they are read (`fields.read`).
    """
    if isinstance(component, gr.File):
        return uploaded(value)
    strange = not isinstance(value, (str, int, float, type(None)))
    if isinstance(component, gr.Radio):
        strange = strange or value not in (None, *(choice for _, choice in component.choices))
    elif isinstance(component, gr.Textbox):
        strange = not isinstance(value, (str, type(None)))
    if strange:
        raise ValueError(STRANGE)
    return value


def uploaded(given: Any) -> str | None:
    """The path of the file that a browser uploaded to a `gr.File`; None for any other value."""
    path = given.get("path") if isinstance(given, dict) else None
    if not isinstance(path, str) or "\0" in path:
        return None
    found = uploaded_file(path)
    return str(found) if found else None
