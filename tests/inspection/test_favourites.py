"""Favourites equal a count over all tokens."""

import numpy as np
import pytest

from playground.inspection import favourites as s


def test_favourites_equal_a_count_over_all_tokens():
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 9, 600)
    experts = np.stack([rng.integers(0, 4, 600), rng.integers(0, 4, 600)], axis=1)
    experts[tokens == 3, 0] = 2  # expert 2 likes token 3
    found = s.favourites(experts, tokens, 2)
    visits = [(int(t), int(e)) for t, row in zip(tokens, experts) for e in row]
    base = sum(e == 2 for _, e in visits) / len(visits)
    assert found[0].token == 3 and found == sorted(found, key=lambda f: -f.lift)
    for f in found:
        own = [e for t, e in visits if t == f.token]
        assert f.count == len(own) // 2
        assert f.share == pytest.approx(sum(e == 2 for e in own) / len(own))
        assert f.lift == pytest.approx(f.share / base)
    assert s.favourites(experts, tokens, 7) == []
    assert all(f.count >= 90 for f in s.favourites(experts, tokens, 2, least=90))
