"""Training: how a run ended, which settings changed, and what it notices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..training import Finished, Noticed, SettingsChanged, TrainEvent
from ..training.events import DEVICE_FAULT, NO_GPU, NOT_COMPILED, NOT_SAVED, OTHER_MACHINE
from ..training.proof import Fault


def in_steps(n: int) -> str:
    """As "1 step" or "1,000 steps"."""
    return f"{n:,} step{'s' * (n != 1)}"


def message(event: TrainEvent) -> str:
    """An event in a sentence, where it has one; else empty."""
    if isinstance(event, Finished):
        return ended(event.to_dict())
    if isinstance(event, SettingsChanged):
        return settings_changed(event.step, event.settings)
    return notice(event) if isinstance(event, Noticed) else ""


def as_dict(event: TrainEvent) -> dict[str, Any]:
    """Plain values for JSON, with the sentence."""
    words = message(event)
    return event.to_dict() | ({"message": words} if words else {})


def ended(finished: Mapping[str, Any]) -> str:
    """How a run ended, from what its history keeps of it. Older versions kept the sentence itself."""
    step, steps, restored = (finished.get(name) for name in ("step", "steps", "weights_step"))
    if not isinstance(step, int) or not isinstance(steps, int):
        return str(finished.get("message") or "")
    done, saved = f"after {step:,} of {in_steps(steps)}", "The model is saved."
    back = "" if restored is None else f" The weights of step {restored:,} are back."
    return {
        "done": "The one step is done." if step == 1 else f"All {step:,} steps are done.",
        "stopped": f"Stopped {done}. {saved}",
        "time": f"Time is up {done}. {saved}",
        "risen": f"Stopped {done} because the validation loss kept rising. The best weights are saved, too.",
        "diverged": f"The loss stopped being a number after {in_steps(step)}.{back}",
    }.get(str(finished.get("reason")), "")


def stopped_at(finished: Mapping[str, Any]) -> str:
    """Where a run was stopped, as "stopped at step 49 of 600"; empty for one that ended by itself."""
    step, steps = finished.get("step"), finished.get("steps")
    cut = finished.get("reason") in ("stopped", "time") and isinstance(step, int) and isinstance(steps, int)
    return f"stopped at step {step:,} of {steps:,}" if cut else ""


def ended_early(step: int, steps: int, scored: int) -> str:
    """Why a run ended on its own before its last step: `scored` evaluations since the best one."""
    return f"It stopped at step {step:,} of {steps:,}: no better on held-out text for {scored} evaluations."


def settings_changed(step: int, settings: Mapping[str, Sequence[Any]]) -> str:
    """At which step which settings were changed: name → (before, after)."""
    words = [f"{name} from {_value(before)} to {_value(after)}" for name, (before, after) in settings.items()]
    return f"Changed after step {step:,}: {', '.join(words)}."


def notice(event: Noticed) -> str:
    """What the visitor should know."""
    facts = event.facts
    if event.kind == DEVICE_FAULT:
        return f"{device_fault(Fault(**facts))} Training runs on the CPU instead."
    if event.kind == NOT_COMPILED:
        return f"torch.compile does not work on this machine ({facts['error']}), so training runs without it."
    if event.kind == NO_GPU:
        return "No GPU is free for this run at the moment, so it uses the Space's CPU."
    if event.kind == NOT_SAVED:
        return f"The run could not be saved ({facts['error']}). It continues, and will try to save again."
    assert event.kind == OTHER_MACHINE, event.kind
    before, now, settings = facts["before"], facts["now"], facts["settings"]
    moved = f"It continues with “{now}” instead of “{before}”. " * (before != now)
    changed = f"{settings_changed(event.step, settings)} " if settings else ""
    return f"{moved}{changed}The last digits of its losses will differ from those of an uninterrupted run."


def device_fault(fault: Fault) -> str:
    """What is wrong with a device."""
    names = {"cuda": "The GPU", "mps": "Apple's GPU", "cpu": "The CPU"}
    name = names.get(fault.device.split(":")[0], f"The device {fault.device}")
    if fault.error:
        return f"{name} cannot train in {fault.precision} ({fault.error})."
    return f"{name} gets {fault.part} wrong in {fault.precision} ({100 * fault.off:.1f} % off)."


def _value(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return "none" if value is None else f"{value:,}" if whole else repr(value)
