"""Numbers on their way to the page: a small encoding for the browser."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

# plotly's names for the types that it reads from base64; float16 is not among them.
_DTYPES = {"f4": np.float32, "f8": np.float64, "i4": np.int32, "i2": np.int16, "u2": np.uint16, "u1": np.uint8}


def numbers(values: Any, dtype: str = "f4") -> dict[str, Any]:
    """Numbers (any shape up to 2-D) in plotly's base64 form; NaN and infinities become NaN, which is drawn as a gap."""
    array = np.asarray(values, dtype=_DTYPES[dtype])
    if array.dtype.kind == "f":
        array = np.where(np.isfinite(array), array, np.array(np.nan, array.dtype))
    encoded = {"dtype": dtype, "bdata": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}
    return encoded if array.ndim == 1 else {**encoded, "shape": ", ".join(map(str, array.shape))}


def escaped(text: str) -> str:
    """Text escaped so that plotly shows it unchanged, since its labels interpret some HTML tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(text: str, length: int = 14) -> str:
    """At most `length` characters, the rest as …"""
    return text if len(text) <= length else text[: length - 1] + "…"
