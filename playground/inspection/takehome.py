"""The script that a visitor downloads with a head: `byhand.py` and a check against the arrays beside it."""

from __future__ import annotations

import inspect

from . import byhand
from .look import Look

ARRAYS = "head.npz"
"""File name of `inspection.receipts.packed_head`, which the script reads."""
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
        print(f"{{place:3}} {{tokens[place]:10}} attends most to {{most:3}} {{tokens[most]:10}} {{weights[most]:.4f}}")
"""


def head_script(look: Look, layer: int, head: int) -> str:
    """A runnable script that computes this head from the arrays beside it and checks the result."""
    tokens = f"{look.length} token{'s' * (look.length != 1)}"
    title = f"layer {layer}, head {head}: {tokens}, width {look.config.d_model}, {look.config.d_head} per head"
    return inspect.getsource(byhand).rstrip() + "\n" + _CHECK.format(arrays=ARRAYS, title=title)
