"""Experiments with whole models: fine-tuning, scores on any text, sweeps, and the numbers behind textbook slips."""
