"""Interventions: what a model does when parts of one run are replaced by those of another, moved, or left out.

patching.py   one part at one token, from another run: the effect on the difference of two logits
direct.py     how much of that difference each part writes straight into the logits
pairs.py      two prompts that differ in one word and decide between two answers
steering.py   a direction added to the residual stream
circuit.py    the parts that carry an answer, and which of them feed which
"""
