"""A class in pictures: the median is of those who were measured, the bar is the interval that was given."""

import json
from itertools import pairwise

import pytest

from playground.figures.classroom import NAMED, TALL, class_curves, class_spread, medians
from playground.figures.wire import numbers_of

RUNGS = [("uniform", 3.7), ("bigram", 1.9), ("floor", 0.1)]


def test_the_median_is_drawn_where_half_were_measured_and_no_name_hides_another():
    curves = [("A", [(0, 4.0), (10, 2.0)]), ("B", [(0, 4.2), (10, 1.0)]), ("C", [(0, 3.9)]), ("D", [(10, 1.5)])]
    assert medians(curves) == [(0, 4.0), (10, 1.5)]
    assert medians(curves[:2]) == []
    figure = class_curves(curves, RUNGS)
    assert [trace["name"] for trace in figure["data"]] == ["A", "B", "C", "D", "median"]
    assert len(figure["layout"]["shapes"]) == 3
    names = {note["text"]: note["y"] for note in figure["layout"]["annotations"] if note.get("xref") == "paper"}
    assert {"A", "B", "C", "D"} <= names.keys() and names["B"] < names["D"] < names["A"] < names["C"]
    colours = [trace["line"]["color"] for trace in figure["data"][:4]]
    assert len(set(colours)) == 4, "a line has the colour of its name"
    curves = [(f"S{n}", [(0, 4.0), (10, 1 + n / 1000)]) for n in range(40)]
    notes = [note for note in class_curves(curves)["layout"]["annotations"] if note.get("xref") == "paper"]
    assert len(notes) == NAMED and {"S0", "S39"} <= {note["text"] for note in notes}
    places = sorted(note["y"] for note in notes)
    low, high = class_curves(curves)["layout"]["yaxis"]["range"]
    nearest = min(after - before for before, after in pairwise(places))
    assert nearest >= 0.99 * TALL * (high - low) / 340 and low <= places[0] and places[-1] <= high


def test_a_bar_is_the_interval_and_there_is_none_for_too_few():
    pair, alone = ("wide", (2.5, 2.7), ("D", "E"), 2.6, None), ("tiny", (3.0,), ("F",), 3.0, None)
    figure = class_spread([("small", (2.0, 2.2, 2.1), ("A", "B", "C"), 2.1, 0.25), pair, alone])
    dots, mean, _, single, last = figure["data"]
    assert (
        mean["error_y"]["array"] == [0.25]
        and numbers_of(mean["y"]).tolist() == pytest.approx([2.1])
        and "error_y" not in single
    )
    assert numbers_of(last["y"]).tolist() == [3.0] and class_spread([alone])["layout"]["yaxis"]["range"] == [2.95, 3.05]
    low, high = class_spread([("two", (0.51, 0.58), ("A", "B"), 0.545, None)])["layout"]["yaxis"]["range"]
    assert 0.4 < low < 0.51 and 0.58 < high < 0.7, "plotly keeps the range of the empty picture, from −1 to 4"
    points = [*zip(*(numbers_of(dots[side]).tolist() for side in "xy"))]
    assert sorted(points, key=lambda point: point[1]) == sorted(points)
    (_, low) = class_spread([("near nothing", (0.0, 0.1, 0.2), ("A", "B", "C"), 0.1, 0.25)], positive=True)["data"]
    assert low["error_y"]["arrayminus"] == [0.1] and "interval from 0 to 0.3500" in low["hovertemplate"]
    assert dots["text"] == ["A", "B", "C"] and "too few for an interval" in single["hovertemplate"]
    for empty in (class_spread([]), class_curves([])):
        assert json.dumps(empty)
