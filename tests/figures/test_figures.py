"""Figures draw the numbers they are given, say what there is to see, and stay small on the wire."""

import colorsys
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from playground.figures import attention, candidates, courses, maps, pair, palette, parts, routing, wire
from playground.figures.classroom import NAMED, TALL, class_curves, class_spread, medians
from playground.figures.interventions import circuit_picture
from playground.figures.loss import Run, loss_curve
from playground.interventions.circuit import Circuit, Edge, Node
from tests.figures.decoded import numbers_of

RNG = np.random.default_rng(0)
RUNGS = [("uniform", 3.33), ("unigram", 2.84), ("bigram", 2.11), ("floor", 1.02)]
TOKENS = ["the", "␣", "<b>", "⏎", "cat", "&"]
RECORDS = [{"step": step, "norms": {"embeddings": 1.0 / (1 + step), "layer 0": 2.0}} for step in (0, 10, 20)]
PATTERN = np.tril(RNG.random((6, 6)))
PATTERN /= PATTERN.sum(axis=1, keepdims=True)


def run(n: int, **changes) -> Run:
    steps = list(range(1, n + 1))
    losses = [1.05 + 2.0 / step for step in steps]
    columns = {"step": steps, "loss": losses, "seconds": [0.5 * step for step in steps]}
    evaluated = {
        "step": steps[9::10],
        "train_loss": losses[9::10],
        "val_loss": [loss + 0.01 for loss in losses[9::10]],
        "seconds": columns["seconds"][9::10],
    }
    return Run(**{"name": "run", "steps": columns, "evaluations": evaluated, **changes})


FIGURES = {
    "loss": loss_curve(run(300), RUNGS, [run(200, name="<other>")], planned_steps=600),
    "loss, nothing yet": loss_curve(run(0), RUNGS),
    "loss, recorded": loss_curve(run(30, kind="moe", recorded=True)),
    "loss, log loss": loss_curve(run(30), RUNGS, log_y=True),
    "gradient map": maps.gradient_map(*maps.gradient_table(RECORDS)),
    "gradient map, nothing yet": maps.gradient_map(*maps.gradient_table([])),
    "similarity": maps.similarity_map(np.eye(6), TOKENS),
    "next tokens": candidates.next_tokens(TOKENS[:3], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7]),
    "temperatures": candidates.temperature_comparison(["a", "b"], {0.5: [0.9, 0.1], 2: [0.6, 0.4]}),
    "token times": courses.token_times([1, 2, 3], [1.0, 1.0, 1.1], [1.0, 2.0, 4.0], context=2),
    "parts": parts.part_map(PATTERN - 0.5, TOKENS, "", margins=PATTERN, layers=range(6)),
    "game": courses.bits_curve({player: RNG.random(12) for player in ("you", "model", "bigram", "floor")}),
    "loads": routing.load_bars({True: [0.5, 0, 0.5], False: [0.6, 0, 0.4]}),
    "pattern": attention.pattern_map(PATTERN, TOKENS),
    "signed": attention.signed_map(np.where(PATTERN, PATTERN - 0.5, -np.inf), TOKENS, name="score"),
    "heads": attention.head_grid(np.stack([PATTERN] * 5), [f"L0 H{i}" for i in range(5)]),
}


def strings(part) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, dict):
        return [text for key, value in part.items() if key != "bdata" for text in strings(value)]
    return [text for value in part for text in strings(value)] if isinstance(part, list) else []


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_json_that_plotly_accepts_without_markup_and_with_dark_partners(name):
    figure = FIGURES[name]
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    layout = figure["layout"]
    assert layout["template"] == "none" and layout["paper_bgcolor"] == "rgba(0,0,0,0)" and layout["height"] >= 50
    assert "uirevision" in layout
    import plotly.graph_objects as go

    layout = {key: value for key, value in FIGURES[name]["layout"].items() if key != "template"}
    go.Figure({"data": FIGURES[name]["data"], "layout": layout})  # raises on any name or value that plotly lacks
    for text in strings(FIGURES[name]):
        if text.startswith("#"):
            assert text in palette.DARK, text
        assert "<b>" not in text and "<other>" not in text


def test_the_palette_is_unambiguous():
    light = [value for key, value in vars(palette).items() if key.isupper() and isinstance(value, str)]
    assert len(set(light)) == len(light)
    assert not set(palette.DARK) & set(palette.DARK.values()), "a colour would be replaced twice"
    assert all(color in palette.DARK for color in [*light, *palette.OTHERS])
    for zero in (palette.PATTERN_SCALE[0][1], palette.DIVERGING_SCALE[2][1]):
        assert zero[1:3] < "f8" and palette.DARK[zero][1:3] > "20", "a 0 is seen on its card, a masked cell is not"
    hue = lambda color: colorsys.rgb_to_hls(*(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0]  # noqa: E731
    signs = [hue(color) for _, color in palette.DIVERGING_SCALE[::4]]
    assert all(abs(hue(role) - sign) > 0.1 for role in (palette.QUERY, palette.KEY) for sign in signs)


@given(arrays(np.float32, (3, 5), elements=st.floats(width=32, allow_nan=True, allow_infinity=True)))
def test_numbers_survive_the_wire_and_what_is_not_finite_becomes_a_gap(values):
    back = numbers_of(wire.numbers(values))
    np.testing.assert_array_equal(back, np.where(np.isfinite(values), values, np.nan))


def test_the_loss_curve_draws_the_runs_own_numbers_by_bucket_means_as_far_as_they_go():
    current = run(40)
    batch, train, val = loss_curve(current, RUNGS)["data"]
    for trace, table, column in (
        (batch, current.steps, "loss"),
        (train, current.evaluations, "train_loss"),
        (val, current.evaluations, "val_loss"),
    ):
        np.testing.assert_array_equal(numbers_of(trace["x"]), np.float32(table["step"]))
        np.testing.assert_array_equal(numbers_of(trace["y"]), np.float32(table[column]))
    layout, sooner = loss_curve(current, RUNGS)["layout"], loss_curve(current)["layout"]
    assert layout["margin"] == sooner["margin"], "the baselines' names come a moment later, and find room"
    shapes = layout["shapes"]
    assert [shape["y0"] for shape in shapes] == [value for _, value in RUNGS]
    long = loss_curve(run(1990), RUNGS, planned_steps=2000)["data"][0]
    short = loss_curve(run(1000), RUNGS, planned_steps=2000)["data"][0]
    y = numbers_of(long["y"])
    np.testing.assert_allclose(y, np.reshape(run(1990).steps["loss"], (-1, 5)).mean(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(numbers_of(short["y"]), y[: len(numbers_of(short["y"]))])
    broken = run(20)
    broken.steps["loss"][-1] = math.nan
    broken.evaluations["val_loss"][-1] = math.inf
    y = numbers_of(loss_curve(broken, RUNGS)["data"][0]["y"])
    assert np.isnan(y[-1]) and np.isfinite(y[:-1]).all()


def test_rungs_the_best_moment_and_differences_are_drawn_where_they_fit():
    rungs = [("uniform", 3.0), ("unigram", 2.99), ("5-gram", 2.98), ("floor", 0.5)]
    layout = loss_curve(run(0), rungs)["layout"]
    assert [note["text"] for note in layout["annotations"]] == [
        "uniform 3.00", "unigram 2.99", "5-gram 2.98", "best possible 0.500"
    ]  # fmt: skip
    shifts = [note["yshift"] for note in layout["annotations"]]
    assert shifts[0] == 0 and -20 < shifts[1] < -16 and shifts[2] < shifts[1] and shifts[3] == 0
    apart = [("uniform", 4.0), ("unigram", 3.0), ("bigram", 2.0), ("floor", 0.5)]
    for those, named in ((rungs, [0, 3]), (apart, [0, 1, 2, 3])):
        narrow = loss_curve(run(20), those)["layout"]["meta"]["narrow"]
        assert [i for i in range(4) if narrow[f"annotations.{i}.visible"]] == named
        assert [i for i in range(4) if narrow[f"shapes.{i}.visible"]] == named, "no line without its name"
    low, near = run(20), [("uniform", 4.0), ("unigram", 3.12), ("bigram", 2.9)]
    low.evaluations["train_loss"][-1] = 0.1
    for level, both in ((2.0, False), (2.97, True)):
        low.evaluations["val_loss"][:] = [level] * len(low.evaluations["step"])
        narrow = loss_curve(low, near)["layout"]["meta"]["narrow"]
        assert narrow["annotations.1.visible"] and narrow["annotations.2.visible"] == both, "the axis is long"
    assert narrow["annotations.2.yshift"] == -9 and not narrow["yaxis.showgrid"], "no line strikes through a name"
    curves = [pair.Curve(kind, kind, [0, 1, 2], [4.0, end, end]) for kind, end in (("dense", 1.95), ("moe", 2.1))]
    narrow = pair.pair_curves(curves, [("uniform", 4.0), ("bigram", 2.02), ("floor", 0.5)])["layout"]["meta"]["narrow"]
    assert not narrow["annotations.1.visible"], "above its line it would cover one curve, below it the other"
    layout = loss_curve(run(30), RUNGS, log_y=True)["layout"]
    assert [shape["y0"] for shape in layout["shapes"]] == [value for _, value in RUNGS]
    assert [10 ** note["y"] for note in layout["annotations"]] == pytest.approx([value for _, value in RUNGS])
    # Its label lay over the curve, the first point on the chart's edge, and 0.002 was written as 0.
    steps = [0.0, 50.0, 100.0]
    columns = {"step": steps, "train_loss": [4.0, 1.0, 0.2], "val_loss": [4.0, 1.5, 2.0], "seconds": steps}
    batches = {"step": [1.0], "loss": [4.0], "seconds": [0.1]}
    marked = loss_curve(Run("run", batches, columns, best=(50, 1.5)), log_y=True, planned_steps=100)
    best = marked["data"][-1]
    assert (numbers_of(best["x"]).tolist(), numbers_of(best["y"]).tolist()) == ([50], [1.5])
    assert best["name"] == "best: step 50" and "annotations" not in marked["layout"]
    (start, end), ticks = marked["layout"]["xaxis"]["range"], marked["layout"]["yaxis"]["tickformat"]
    assert start < 0 and end > 100 and ticks == ".2~r"
    assert len(loss_curve(Run("run", batches, columns), planned_steps=100)["data"]) == 3
    steps, differences = np.arange(0, 500, 50), np.array([[0.02, -0.5, 0.01, 0.01, -0.01, 0.02, 0.01, 0.01, 0.0, 0.01]])
    layout = pair.difference_lines(steps, differences, differences[0], np.full(10, np.nan), end=450)["layout"]
    (start, end), (low, high) = layout["xaxis"]["range"], layout["yaxis"]["range"]
    assert (start, end) == (0, 450) and low <= differences[0, 2:].min() and differences[0, 2:].max() <= high
    drawn = pair.difference_lines(steps, np.vstack([differences] * 3), differences[0], differences[0])["data"]
    assert [each["name"] for each in drawn if each.get("showlegend", True)] == ["95 % interval", "each seed", "mean"]


def test_cosines_candidates_gradients_and_games_are_drawn_as_they_are_counted():
    vectors = RNG.normal(size=(5, 7))
    vectors[3] = 0
    similarity = maps.cosine_similarity(vectors)
    for i in range(5):
        for j in range(5):
            length = math.dist(vectors[i], [0] * 7) * math.dist(vectors[j], [0] * 7)
            assert similarity[i, j] == pytest.approx(sum(vectors[i] * vectors[j]) / length if length else 0.0)
    order = maps.similarity_order(similarity)
    assert sorted(order) == list(range(5))
    z = numbers_of(maps.similarity_map(similarity, list("abcde"))["data"][0]["z"])
    assert np.isnan(np.diag(z)).all()
    cells = maps.gradient_map(*maps.gradient_table(RECORDS))["data"][0]
    norms = np.array([[1, 1 / 11, 1 / 21], [2, 2, 2]])
    np.testing.assert_allclose(numbers_of(cells["z"]), np.log10(norms), rtol=1e-5)
    np.testing.assert_allclose(numbers_of(cells["customdata"]), norms, rtol=1e-6)
    before, after = candidates.next_tokens(["a", "a", "b"], [0.5, 0.3, 0.2], [0.1, 0.2, 0.7])["data"]
    np.testing.assert_array_equal(numbers_of(after["x"]), [0.5, 0.3, 0.2])
    np.testing.assert_array_equal(numbers_of(before["x"]), [0.1, 0.2, 0.7])
    assert numbers_of(after["y"]).tolist() == [0, 1, 2], "equal texts are different rows"
    bits = {"you": np.array([1.0, 3.0]), "model": np.array([0.5, 0.25])}
    drawn = courses.bits_curve(bits)
    totals = [numbers_of(trace["y"]).tolist() for trace in drawn["data"]]
    assert totals == [[0.0, 1.0, 4.0], [0.0, 0.5, 0.75]]
    assert courses.bits_curve({"you": np.array([])})["data"]


def test_masked_cells_are_blank_and_sixteen_heads_and_a_long_run_weigh_little():
    figure = attention.pattern_map(PATTERN, TOKENS)
    assert figure["layout"]["meta"]["narrow"] == {"xaxis.title.text": ""}
    assert "masked" in strings(figure["layout"]["annotations"])
    assert figure["layout"]["plot_bgcolor"] == "rgba(0,0,0,0)", "the card, which no weight looks like"
    z = numbers_of(figure["data"][0]["z"])
    hidden = np.triu(np.ones((6, 6), bool), 1)
    assert np.isnan(z[hidden]).all()
    np.testing.assert_array_equal(z[~hidden], np.float32(PATTERN[~hidden]))
    seeing = attention.pattern_map(PATTERN, TOKENS, causal=False)
    assert np.isfinite(numbers_of(seeing["data"][0]["z"])).all() and not seeing["layout"].get("annotations")
    assert FIGURES["loads"]["layout"]["shapes"][0]["y0"] == pytest.approx(1 / 3), "an equal share"
    patterns = np.tril(RNG.random((16, 64, 64)))
    titles = [f"L{i // 4} H{i % 4}" for i in range(16)]
    grid = attention.head_grid(patterns, titles)
    assert len(json.dumps(grid)) < 400_000
    small = grid["data"][3]
    assert np.isnan(numbers_of(small["z"])[0, 1:]).all() and "hoverongaps" not in small, "a blank cell hears clicks"
    assert len(json.dumps(loss_curve(run(5000), RUNGS, planned_steps=5000))) < 20_000
    long = attention.pattern_map(patterns[0], ["token"] * 64, mark=(62, 15))
    assert len(json.dumps(long)) < 30_000
    other = attention.pattern_map(patterns[0], ["token"] * 64, mark=(5, 1))["layout"]
    assert other | {"shapes": 0} == long["layout"] | {"shapes": 0}, "another cell changes the frame alone"


def test_no_link_of_a_circuit_crosses_a_part_even_on_a_phone_and_each_head_can_be_clicked():
    # a circuit of Tiny stories: parts by layer and head, links by the place of their parts, the answer last
    nodes = [Node(0, 0), Node(0, 1), Node(0, 3), Node(0), Node(1), Node(2, 3), Node(2), Node(3, 1), Node(3), None]
    links = ("03", "13", "23", "34", "35", "37", "45", "56", "57", "58", "59", "67", "68", "69", "78", "89")
    edges = tuple(Edge(nodes[int(a)], nodes[int(b)], (10 + i) / 100) for i, (a, b) in enumerate(links))
    lost = {**dict.fromkeys(nodes[:-1], 0.5), nodes[0]: 1.3}
    picture = circuit_picture(Circuit(lost, edges, 0.9, (), 20), "a<b>")
    (trace,), layout = picture["data"], picture["layout"]
    boxes = {note["text"]: (note["x"], note["y"]) for note in layout["annotations"] if not note["showarrow"]}
    assert len(boxes) == len(nodes) and layout["height"] <= 560, "links have no numbers, the picture fits on a screen"
    assert {"<b>head 0.0</b><br>100\xa0%", "<b>MLP 0</b><br>50\xa0%", "<b>“a&lt;b&gt;”</b>"} < boxes.keys()
    heads = {text[3:11]: place for text, place in boxes.items() if "head" in text}
    assert dict(zip(trace["text"], zip(trace["x"], trace["y"]))) == {f"Show {name}": at for name, at in heads.items()}
    left, right = layout["meta"]["narrow"]["xaxis.range"]
    unit = np.array([300 / (right - left), 62])
    places = np.array([*boxes.values()]) * unit
    for note in layout["annotations"]:
        if note["showarrow"]:
            start, end = np.array([(note["ax"], note["ay"]), (note["x"], note["y"])]) * unit
            others = places[(np.abs(places - start) > 1).any(1) & (np.abs(places - end) > 1).any(1)]
            way = start + np.linspace(0, 1, 200)[:, None] * (end - start)
            assert (np.abs(way[:, None] - others) >= [30, 20]).any(2).all(), "a link crosses a part"


def test_the_median_is_drawn_where_half_were_measured_and_names_are_at_the_ends_of_lines():
    curves = [("A", [(0, 4.0), (10, 2.0)]), ("B", [(0, 4.2), (10, 1.0)]), ("C", [(0, 3.9)]), ("D", [(10, 1.5)])]
    assert medians(curves) == [(0, 4.0), (10, 1.5)]
    assert medians(curves[:2]) == []
    figure = class_curves(curves, [("uniform", 3.7), ("bigram", 1.9), ("floor", 0.1)])
    assert [trace["name"] for trace in figure["data"]] == ["B", "D", "A", "C", "median"]
    assert len(figure["layout"]["shapes"]) == 3
    colours = [trace["line"]["color"] for trace in figure["data"][:4]]
    assert len(set(colours)) == 4, "a line has the colour of its name"
    curves = [(f"S{n}", [(0, 4.0), (10, 1 + n / 1000)]) for n in range(40)]
    figure = class_curves(curves)
    names = {note["text"]: note for note in figure["layout"]["annotations"]}
    assert len({note["font"]["color"] for note in names.values()}) == len(names) == NAMED and {"S0", "S39"} <= {*names}
    low, high = figure["layout"]["yaxis"]["range"]
    gaps = np.diff([note["y"] for note in names.values()]) / (high - low) * (340 - 68)
    assert (gaps >= TALL - 0.01).all(), "no name covers another"


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
    assert dots["text"] == ["A", "B", "C"] and "too few for an interval" in single["hovertemplate"]
    for empty in (class_spread([]), class_curves([])):
        assert json.dumps(empty)
