"""What a figure carries, as the browser reads it."""

import base64
from typing import Any

import numpy as np


def numbers_of(encoded: Any) -> np.ndarray:
    """The numbers of one property of a trace: a plain list, or what `figures.wire.numbers` made of an array."""
    if not isinstance(encoded, dict):
        return np.asarray(encoded)
    array = np.frombuffer(base64.b64decode(encoded["bdata"]), encoded["dtype"])
    return array.reshape([int(n) for n in encoded["shape"].split(",")]) if "shape" in encoded else array
