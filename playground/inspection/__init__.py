"""Inspection: traces → numbers. Pure functions, tested against independent NumPy code."""

from .look import Look, look

__all__ = ["Look", "look"]
