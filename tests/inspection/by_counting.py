"""Information counted with dictionaries, for tests."""

from collections import Counter
from math import log2


def information_by_counting(pairs):
    """I(X; Y) in bits from a list of pairs, with dictionaries and the definition."""
    both, left, right, n = Counter(pairs), Counter(x for x, _ in pairs), Counter(y for _, y in pairs), len(pairs)
    return sum(c / n * log2(c * n / (left[x] * right[y])) for (x, y), c in both.items())
