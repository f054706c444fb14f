"""The sampling controls: few on top, the rest under Advanced, each with a reason; presets are buttons that set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ....engine import PRECISIONS, SAMPLING_PRESETS, SamplingConfig
from ....service.limits import Limits
from ...forms import sampling as form
from ...forms.fields import Field, by_name, titled, whole
from ...links import Rules
from ...page import QUIETLY

PRECISION = Field(
    "precision",
    "Precision",
    "Of the weights while it writes; see What precision costs, below.",
    choices=titled(PRECISIONS),
)
_IDLE = "Idle: greedy always takes the likeliest token."


@dataclass
class Controls:
    """The components, by the name of the setting they hold."""

    preset: gr.Radio
    again: gr.Checkbox
    """Whether a press is to keep the seed of the one before it."""
    components: dict[str, gr.components.Component]
    limits: Limits

    @property
    def rules(self) -> Rules:
        """What a link may carry of them."""
        components = {name: self.components[name] for name in form.BY_NAME}
        return Rules(form.BY_NAME, components, form.first_values(self.limits))

    @property
    def inputs(self) -> set[gr.components.Component]:
        """To be joined to an event's inputs; the handler then gets one dictionary."""
        return {self.again, *self.components.values()}

    def sampling(self, values: Mapping[gr.components.Component, Any], **changes: Any) -> SamplingConfig:
        """The SamplingConfig that the controls say. Raises ValueError where a number makes no sense."""
        return form.sampling(by_name(self.components, values), **changes)

    def amount(self, values: Mapping[gr.components.Component, Any]) -> tuple[int, int]:
        """(new tokens, samples)."""
        named = by_name(self.components, values)
        return whole("new tokens", named["new_tokens"]), whole("samples", named["samples"])

    def precision(self, values: Mapping[gr.components.Component, Any]) -> str:
        """In which precision to decode. Raises ValueError where there is no such one."""
        return PRECISION.read(by_name(self.components, values)["precision"], self.limits)

    def stops(self, values: Mapping[gr.components.Component, Any]) -> list[str]:
        """The stop strings, one per line; \\n in one stands for a line break."""
        lines = (values[self.components["stop"]] or "").split("\n")
        return [line.replace("\\n", "\n") for line in lines if line][:8]


def build(limits: Limits) -> Controls:
    """Draw the controls."""
    again = gr.Checkbox(
        False,
        label="The same again",
        info="Keep the seed: the same prompt and settings then give the same text.",
        elem_id="same-again",
    )
    preset = gr.Radio(
        [(name.capitalize(), name) for name in SAMPLING_PRESETS],
        value=form.FIRST_PRESET,
        label="How bold",
        info=_said(form.FIRST_PRESET),
        elem_id="sampling-preset",
    )
    first, made = form.first_values(limits), {}

    def draw(*names: str) -> None:
        for name in names:
            # side by side where there is room for their boxes, one below the other on a phone
            wide = {} if form.BY_NAME[name].is_switch else {"min_width": 200}
            made[name] = form.BY_NAME[name].build(limits, first[name], elem_id=f"generate-{name}", **wide)

    with gr.Row():
        draw("temperature", "new_tokens")
    with gr.Accordion("Advanced", open=False, elem_id="sampling-advanced"):
        for pair in (("top_k", "top_p"), ("min_p", "repetition_penalty"), ("samples", "seed")):
            with gr.Row():
                draw(*pair)
        draw("greedy")
        made["precision"] = PRECISION.build(limits, PRECISIONS[0])
        made["stop"] = gr.Textbox(
            "", lines=1, max_lines=4, label="Stop at", info="One text per line; \\n is a line break."
        )
    names = list(form.preset_values(form.FIRST_PRESET))

    def set_controls(name: Any) -> list[Any]:
        name = name if name in SAMPLING_PRESETS else "neutral"
        values = form.preset_values(name)
        return [gr.Radio(info=_said(name)), *(values[n] for n in names)]

    def temper(greedy: bool) -> Any:
        return gr.Slider(interactive=not greedy, info=_IDLE if greedy else form.BY_NAME["temperature"].why)

    def choose_preset(*values: Any) -> Any:
        name = form.preset_of(dict(zip(names, values)))
        return gr.Radio(value=name, info=_said(name))

    numbers = [made[n] for n in names]
    following = {"trigger_mode": "always_last", "preprocess": False, **QUIETLY}  # a number being typed is any
    gr.on([n.change for n in numbers], choose_preset, numbers, preset, **following)
    made["greedy"].change(temper, made["greedy"], made["temperature"], **QUIETLY)
    preset.input(set_controls, preset, [preset, *numbers], **QUIETLY)
    return Controls(preset, again, made, limits)


def _said(preset: str | None) -> str:
    if preset is None:
        return "Your own: none of these has the numbers below."
    return f"{preset.capitalize()}: {form.WHY[preset]}."
