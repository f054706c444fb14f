"""Inspection: traces → numbers. Pure functions, tested against NumPy that shares nothing with them."""

from .look import Look, look

__all__ = ["Look", "look"]
