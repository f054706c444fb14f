"""Numbers for reading: the one place that formats them. No line breaks between a number and its percent sign."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(value: float, digits: int = 1) -> str:
    """A share (0 … 1) for reading: what would be rounded to nothing or to all, but is not, is called neither."""
    share, least = 100 * value, 10**-digits
    if 0 < share < least / 2:
        return f"<{least:g}\u00a0%"
    return f">{100 - least:g}\u00a0%" if 100 - least / 2 < share < 99.9999 else f"{signed(share, digits)}\u00a0%"


def brief(value: float, digits: int = 2) -> str:
    """A number to so many digits, however small, with proper minus signs; nothing has none."""
    shown = f"{value + 0.0:.0f}" if abs(value) >= 10**digits else f"{value + 0.0:.{digits}g}"
    return shown.replace("-", "−")


def signed(value: float, digits: int = 2, *, plus: bool = False) -> str:
    """A number with a proper minus sign, and a plus sign if asked; what is rounded to zero has no minus."""
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:{'+' if plus else ''}.{digits}f}".replace("-", "−")


def estimate(mean: float, margin: float, digits: int = 2) -> str:
    """A mean with its interval, to two digits of the margin and at most `digits` decimals; no space may break."""
    supported = 1 - math.floor(math.log10(margin)) if 0 < margin < math.inf else digits
    shown = max(0, min(digits, supported))
    return f"{signed(mean, shown)}\u00a0±\u00a0{margin:.{shown}f}"


def beside_zero(mean: float, margin: float) -> str:
    """Whether the interval of a difference excludes zero."""
    return f"The interval {'excludes' if abs(mean) > margin else 'includes'} zero."


def bytes_text(count: float) -> str:
    """Bytes in B, kB, MB or GB, each a thousand of the one before."""
    for unit, suffix in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(count) >= unit:
            return f"{count / unit:.4g} {suffix}"
    return f"{count:.0f} B"


def share(value: float) -> str:
    """A share (0 … 1) for a sentence: two digits of it, or of what is missing from the whole: 15 %, 0.42 %, 99.98 %."""
    if value <= 0 or value >= 1:
        return f"{100 * min(max(value, 0), 1):.0f}\u00a0%"
    if value < 0.00005:
        return "<0.01\u00a0%"
    if value > 0.99995:
        return ">99.99\u00a0%"
    digits = max(0, 1 - math.floor(math.log10(100 * min(value, 1 - value) if value > 0.9 else 100 * value)))
    return f"{100 * value:.{min(digits, 2)}f}\u00a0%"


def listed(parts: Sequence[str]) -> str:
    """As "1, 2 and 3"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
