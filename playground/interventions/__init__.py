"""Interventions: what a model does when parts of one run are replaced by those of another, moved, or left out.

patching.py   one part at one token, from another run: the effect on the difference of two logits
direct.py     how much of that difference each part writes straight into the logits
pairs.py      two prompts that differ in one word and decide between two answers
steering.py   a direction added to the residual stream
circuit.py    the parts that carry an answer, and which of them feed which
"""

from .circuit import Circuit, Node, find_circuit
from .pairs import found_pairs, fresh_pairs, written_pairs
from .patching import Donor, Pair, Patch, PatchMap, pair_of, patch_map
from .steering import Steer, difference_of_means

__all__ = [
    "Circuit",
    "Donor",
    "Node",
    "Pair",
    "Patch",
    "PatchMap",
    "Steer",
    "difference_of_means",
    "find_circuit",
    "found_pairs",
    "fresh_pairs",
    "pair_of",
    "patch_map",
    "written_pairs",
]
