"""Take a head home: its input and weights as .npz, and a NumPy script that makes it again and checks that it agrees."""

from __future__ import annotations

import inspect
import io

import numpy as np

from . import byhand
from .look import Look
from .receipts import head_arrays

ARRAYS = "head.npz"
SCRIPT = "head.py"

_CHECK = """

if __name__ == "__main__":
    from pathlib import Path

    head = dict(np.load(Path(__file__).with_name("{arrays}")))
    tokens, steps = head["tokens"], attend(head)
    for name in ("pattern", "z"):
        difference = np.abs(steps[name] - head["model_" + name]).max()
        print(f"{{name:8}} largest difference from the model's own forward: {{difference:.1e}}")
        assert difference < 1e-4, name
    np.set_printoptions(precision=2, suppress=True, linewidth=140)
    print("{title}")
    for place in range(min(len(tokens), 12)):
        weights = steps["pattern"][place]
        most = weights.argmax()
        print(f"{{place:3}} {{tokens[place]:10}} looks most at {{most:3}} {{tokens[most]:10}} {{weights[most]:.4f}}")
"""


def take_home(look: Look, layer: int, head: int) -> dict[str, bytes]:
    """File name → contents: the arrays in float32, with the model's own pattern (T, T) and z (T, D), and the script."""
    arrays = {
        name: array.astype(np.float32) if array.ndim else array
        for name, array in head_arrays(look, layer, head).items()
    }
    arrays["model_pattern"] = look.pattern(layer)[head].cpu().float().numpy()
    arrays["model_z"] = look.trace["z", layer][0, :, head].cpu().float().numpy()
    arrays["tokens"] = np.array(look.tokens)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    tokens = f"{look.length} token{'s' * (look.length != 1)}"
    title = f"layer {layer}, head {head}: {tokens}, width {look.config.d_model}, {look.config.d_head} per head"
    return {ARRAYS: file.getvalue(), SCRIPT: script(title).encode("utf-8")}


def script(title: str) -> str:
    """The runnable script: `byhand.py` as it stands here, and a check against the arrays beside it."""
    return inspect.getsource(byhand).rstrip() + "\n" + _CHECK.format(arrays=ARRAYS, title=title)
