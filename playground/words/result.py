"""The one shape of a result: headline, number, details."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """What was found, most important first. Number and details may be empty."""

    headline: str
    number: str = ""
    """The one number behind the headline, in a sentence."""
    details: str = ""
    """Limits, reasons and advice."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.headline, self.number, self.details)))
