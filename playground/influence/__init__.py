"""Influence: which training text a model's words come from: copied pieces, the passages behind them, and the proof.

verbatim.py   the longest verbatim matches of a text, by a suffix array
passages.py   a training text as passages, and which of them to measure
gradients.py  gradients of a selection, of single examples, and the change along a direction
geometry.py   the optimizer's geometry: how a gradient becomes a step
ranking.py    the influence of every passage on a selection (TracIn, Pruthi et al. 2020)
proof.py      the same training without some passages, and without as many random ones
"""
