"""The sampling controls: few on top, the rest under Advanced, each with a reason; presets are buttons that set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ....decoding import SAMPLING_PRESETS, SamplingConfig
from ....service.limits import Limits
from ...page import QUIETLY

WHY = {
    "neutral": "the model's own distribution, nothing changed",
    "careful": "low temperature: the likeliest continuations",
    "balanced": "a little cooler, the long tail cut off",
    "creative": "full temperature, only the absurd cut off",
    "wild": "temperature 2: nearly everything is possible",
    "greedy": "always the likeliest token",
}


@dataclass
class Controls:
    """The components, by the name of the setting they hold."""

    preset: gr.Radio
    again: gr.Checkbox
    """Whether a press is to keep the seed of the one before it."""
    components: dict[str, gr.components.Component]

    @property
    def inputs(self) -> set[gr.components.Component]:
        """To be joined to an event's inputs; the handler then gets one dictionary."""
        return {self.again, *self.components.values()}

    def sampling(self, values: Mapping[gr.components.Component, Any], **changes: Any) -> SamplingConfig:
        """The SamplingConfig that the controls say. Raises ValueError where a number makes no sense."""
        given = {name: values[self.components[name]] for name in _SAMPLING}
        given["top_k"] = whole("top-k", given["top_k"]) or None
        given["seed"] = whole("seed", given["seed"])
        return SamplingConfig(**{**given, **changes})

    def amount(self, values: Mapping[gr.components.Component, Any]) -> tuple[int, int]:
        """(new tokens, samples)."""
        return (
            whole("new tokens", values[self.components["new_tokens"]]),
            whole("samples", values[self.components["samples"]]),
        )

    def stops(self, values: Mapping[gr.components.Component, Any]) -> list[str]:
        """The stop strings, one per line; \\n in one stands for a line break."""
        lines = (values[self.components["stop"]] or "").split("\n")
        return [line.replace("\\n", "\n") for line in lines if line][:8]


_TEMPERATURE = "Below 1 safer, above 1 more even; 0 is greedy."
_IDLE = "Idle: greedy always takes the likeliest token."
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "greedy", "seed")


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
        value="balanced",
        label="How bold",
        info=f"Balanced: {WHY['balanced']}.",
        elem_id="sampling-preset",
    )
    start = SAMPLING_PRESETS["balanced"]
    made: dict[str, gr.components.Component] = {}
    with gr.Row():
        made["temperature"] = gr.Slider(
            0,
            3,
            start.temperature,
            step=0.05,
            label="Temperature",
            info=_TEMPERATURE,
        )
        made["new_tokens"] = gr.Slider(
            1, limits.new_tokens, min(200, limits.new_tokens), step=1, label="New tokens", info="How much to write."
        )
    with gr.Accordion("Advanced", open=False):
        with gr.Row():
            made["top_k"] = gr.Number(
                0, label="Top-k", precision=0, minimum=0, info="Keep the k likeliest; 0 keeps all."
            )
            made["top_p"] = gr.Slider(
                0.01,
                1,
                start.top_p,
                step=0.01,
                label="Top-p",
                info="The likeliest that hold this share; 1 for all.",
            )
        with gr.Row():
            made["min_p"] = gr.Slider(
                0, 1, 0, step=0.01, label="Min-p", info="Drop what is less likely than this share of the likeliest."
            )
            made["repetition_penalty"] = gr.Slider(
                0.5, 2, 1, step=0.05, label="Repetition penalty", info="Above 1, tokens that occurred get less likely."
            )
        with gr.Row():
            made["samples"] = gr.Slider(
                1, limits.samples, 1, step=1, label="Samples", info="Several continuations of the same prompt at once."
            )
            made["seed"] = gr.Number(
                0, label="Seed", precision=0, minimum=0, info="Moves on with every text, unless it is kept."
            )
        made["greedy"] = gr.Checkbox(False, label="Greedy", info="Always the likeliest token; other rules are idle.")
        made["stop"] = gr.Textbox(
            "", lines=1, max_lines=4, label="Stop at", info="One text per line; \\n is a line break."
        )
    controls = Controls(preset, again, made)
    names = [name for name in _SAMPLING if name != "seed"]

    def set_controls(name: str) -> list[Any]:
        name = name if name in SAMPLING_PRESETS else "neutral"
        chosen = SAMPLING_PRESETS[name].to_dict()
        said = gr.Radio(info=f"{name.capitalize()}: {WHY[name]}.")
        return [said, *(chosen[n] or 0 if n == "top_k" else chosen[n] for n in names)]

    def temper(greedy: bool) -> Any:
        return gr.Slider(interactive=not greedy, info=_IDLE if greedy else _TEMPERATURE)

    made["greedy"].change(temper, made["greedy"], made["temperature"], **QUIETLY)
    preset.input(
        set_controls,
        preset,
        [preset, *(made[n] for n in names)],
        **QUIETLY,
    )
    return controls


def whole(name: str, value: Any) -> int:
    """A whole number out of what a page or a program sent. Raises ValueError."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**53
    if not number or value != int(value):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    return int(value)
