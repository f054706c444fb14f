"""One attention head by hand: plain NumPy in float64, nothing hidden. The receipts use it.

T = tokens, d = width of the residual stream, D = width of one head. The head is a dictionary of arrays:
x (T, d), what attention reads; W_q, W_k, W_v (d, D) with b_q, b_k, b_v (D,); W_o (D, d), the head's share of the output
matrix; causal (0 or 1); and, only where the model has them, q_gain, k_gain (D,) with norm_eps, and rotary_base.
"""

import numpy as np


def attend(head):
    """Every step of the head: a dictionary of q, k, v, scores, masked_scores, exponentials, pattern, z and out."""
    x = np.asarray(head["x"], dtype=np.float64)  # (T, d)
    q = x @ head["W_q"] + head["b_q"]  # (T, D) queries
    k = x @ head["W_k"] + head["b_k"]  # (T, D) keys
    v = x @ head["W_v"] + head["b_v"]  # (T, D) values
    if "q_gain" in head:  # QK-norm: every query and key is scaled to length √D, then by a gain per number
        q = normalise(q, head["q_gain"], head["norm_eps"])
        k = normalise(k, head["k_gain"], head["norm_eps"])
    steps = {"q": q, "k": k, "v": v}
    if "rotary_base" in head:  # rotary positions: pairs of numbers are turned, by an angle that grows with the position
        q, k = turn(q, head["rotary_base"]), turn(k, head["rotary_base"])
        steps.update(q_rotated=q, k_rotated=k)
    scores = q @ k.T / np.sqrt(q.shape[1])  # (T, T) row: query, column: key
    hidden = np.triu(np.ones(scores.shape, dtype=bool), 1) if head["causal"] else np.zeros(scores.shape, dtype=bool)
    masked = np.where(hidden, -np.inf, scores)  # a token cannot see what comes after it
    exponentials = np.exp(masked - masked.max(axis=1, keepdims=True))  # the row's largest becomes 1
    pattern = exponentials / exponentials.sum(axis=1, keepdims=True)  # rows sum to 1
    z = pattern @ v  # (T, D) the weighted sum of values
    out = z @ head["W_o"]  # (T, d) what the head adds to the residual stream
    steps.update(scores=scores, masked_scores=masked, exponentials=exponentials, pattern=pattern, z=z, out=out)
    return steps


def normalise(x, gain, eps):
    """Divide each row of x (T, D) by its root mean square, then multiply by the gain (D,)."""
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * gain


def turn(x, base):
    """Turn pair i of row p of x (T, D), its numbers i and i + D/2, by the angle p · base^(-2i/D)."""
    length, width = x.shape
    angles = np.outer(np.arange(length), float(base) ** (-np.arange(0, width, 2) / width))  # (T, D/2)
    first, second = x[:, : width // 2], x[:, width // 2 :]
    turned = first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)
    return np.concatenate(turned, axis=1)
