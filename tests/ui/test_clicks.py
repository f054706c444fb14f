"""A click's event becomes numbers that fit what was drawn, or one sentence: whatever somebody wrote into it."""

import pytest

from playground.ui.clicks import cell_of, index_of, number_of, trace_of

HUGE = 10**400
NONSENSE = [None, True, "1", "x", [], [1], [1, 2, 3], {}, {"0": 1}, [None, None], [[0], [0]], [{}, 0], ["0", "0"],
            [True, False], [0.5, 0], [float("nan"), 0], [float("inf"), 0], [-1, 0], [0, -1], [3, 0], [0, 4],
            [HUGE, 0], [0, -HUGE]]  # fmt: skip


@pytest.mark.parametrize("said", [{}, *({"index": place} for place in NONSENSE)], ids=repr)
def test_what_is_no_cell_is_a_sentence(said):
    with pytest.raises(ValueError, match="Click again"):
        cell_of(said, rows=3, columns=4)


@pytest.mark.parametrize("place", [None, True, "0", {}, [], [0], float("nan"), 2.5, -1, 4, HUGE, [0, 4], [0, None]])
def test_what_is_no_place_in_a_row_is_a_sentence(place):
    with pytest.raises(ValueError, match="Click again"):
        index_of({"index": place}, 4)
    with pytest.raises(ValueError, match="Click again"):
        trace_of({"trace": place}, 4)
    if not isinstance(place, (int, float)) or isinstance(place, bool) or place != place or place == HUGE:
        with pytest.raises(ValueError, match="Click again"):
            number_of({"x": place}, "x")


def test_a_cell_that_is_drawn_is_that_cell():
    assert cell_of({"index": [2, 3]}, rows=3, columns=4) == (2, 3)
    assert cell_of({"index": (2.0, 0), "value": 1}, rows=3, columns=4) == (2, 0)
    assert index_of({"index": 3}, 4) == index_of({"index": [0, 3]}, 4) == 3
    assert trace_of({"trace": 1.0}, 4) == 1 and number_of({"x": -2.5}, "x") == -2.5
