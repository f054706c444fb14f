"""The chart in a real browser: it keeps its node and zoom, follows the page, reports clicks."""

from __future__ import annotations

import gradio as gr
import numpy as np
import pytest

from playground.figures import attention, palette
from playground.figures.loss import Run, describe_loss, loss_curve
from playground.ui import theme
from playground.ui.chart import chart_place, show
from playground.words.heads import describe_pattern

from .measuring import saves

STEPS = 120
TOKENS = ["the", "␣", "cat", "⏎"]
PATTERN = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.7, 0.1, 0], [0.25, 0.25, 0.25, 0.25]])


def loss_figure(n: int) -> dict:
    steps = list(range(1, n + 1))
    losses = [3.0 / (1 + 0.05 * step) + 0.5 for step in steps]
    columns = {"step": steps, "loss": losses, "seconds": [0.1 * step for step in steps]}
    evaluations = {"step": steps[::10], "train_loss": losses[::10], "val_loss": losses[::10]}
    run = Run("this run", columns, {**evaluations, "seconds": columns["seconds"][::10]})
    rungs = [("uniform", 3.3), ("floor", 0.6)]
    return loss_curve(run, rungs, planned_steps=STEPS), describe_loss(run, rungs)


ON_LOAD = "playgroundChart(element, props, trigger, watch) /* 'select', which gradio looks for in here */"


def Chart(value=None, *, elem_id: str, **place) -> gr.HTML:
    """The place of a chart with nothing around it."""
    return gr.HTML(value, html_template=chart_place("it", **place), js_on_load=ON_LOAD, elem_id=elem_id, padding=False)


class Growing:
    """A run that grows by ten steps whenever it is asked."""

    def __init__(self):
        self.start()

    def start(self):
        self.steps = 20
        return show(*loss_figure(self.steps))

    def grow(self):
        self.steps += 10
        return show(*loss_figure(self.steps))


@pytest.fixture(scope="module")
def growing():
    return Growing()


@pytest.fixture(scope="module")
def address(serve, growing):
    with gr.Blocks(title="charts") as app, gr.Tabs():
        with gr.Tab("One"):
            start, grow = gr.Button("start"), gr.Button("grow")
            loss = Chart(elem_id="loss", save_name="loss", height=300)
            start.click(growing.start, None, loss)
            grow.click(growing.grow, None, loss)
            quiet = gr.Button("grow elsewhere")
            gr.HTML(theme.table(("name", "number"), [("=1+1", "−7"), ("@SUM(A1)", "+0.5")], save="names"))
        with gr.Tab("Two"):
            figure = attention.pattern_map(PATTERN, TOKENS)
            cells = Chart(show(figure, describe_pattern(PATTERN, TOKENS)), elem_id="cells", clickable=True)
            clicked = gr.Textbox(label="clicked", elem_id="clicked")
            redraw = gr.Button("redraw")
            grow_hidden = gr.Button("grow hidden")
            grow_hidden.click(growing.grow, None, loss)

            def say(event: gr.SelectData) -> str:
                return f"{event.index} {event.value:.2f} {event.trace}"

            cells.select(say, None, clicked)
            other = attention.pattern_map(PATTERN.clip(0, 0.9), TOKENS)
            redraw.click(lambda: show(other, "Drawn again."), None, cells)
            gr.Button("the same").click(lambda: show(other, "Said again."), None, cells)
        quiet.click(lambda: None)
    return serve(app)


def ready(page, chart: str = "#loss") -> None:
    page.wait_for_selector(f"{chart} .chart-box[data-state=drawn]")


def points(page, trace: int = 0) -> int:
    return page.evaluate(f"document.querySelector('#loss .chart-plot')._fullData?.[{trace}].x.length ?? 0")


def wait_for_points(page, count: int) -> None:
    page.wait_for_function(f"document.querySelector('#loss .chart-plot')._fullData?.[0].x.length === {count}")


def begin(page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="start").click()
    ready(page)
    wait_for_points(page, 20)


def test_a_growing_run_keeps_node_and_zoom(chromium_page, address, growing):
    page = chromium_page
    begin(page, address)
    page.evaluate(
        "window.node = document.querySelector('#loss .chart-plot'); node.querySelector('svg').dataset.mine = 1"
    )
    reset = page.locator("#loss [data-chart=reset]")
    assert reset.is_hidden()
    box = page.locator("#loss .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 180, steps=6)
    page.mouse.up()
    reset.wait_for(state="visible")
    zoom = page.evaluate("[node.layout.xaxis.range, node.layout.yaxis.range].flat()")
    for count in (30, 40, 50):
        page.get_by_role("button", name="grow", exact=True).click()
        wait_for_points(page, count)
    assert page.evaluate("document.querySelector('#loss .chart-plot') === window.node")
    assert page.evaluate("node.querySelector('svg').dataset.mine") == "1"
    assert page.evaluate("[node.layout.xaxis.range, node.layout.yaxis.range].flat()") == pytest.approx(zoom)
    drawn = page.evaluate("Array.from(node._fullData[0].y)")
    assert drawn == pytest.approx([3.0 / (1 + 0.05 * step) + 0.5 for step in range(1, 51)], abs=1e-5)
    reset.click()
    page.wait_for_function("Math.abs(node.layout.xaxis.range[1] - 120) < 1e-6 && node._fullLayout.yaxis.autorange")
    reset.wait_for(state="hidden")


def test_points_that_came_while_the_tab_was_hidden_are_there_afterwards(chromium_page, address):
    page = chromium_page
    begin(page, address)
    page.get_by_role("tab", name="Two").click()
    ready(page, "#cells")
    for _ in range(2):
        page.get_by_role("button", name="grow hidden").click()
        page.wait_for_timeout(400)
    page.get_by_role("tab", name="One").click()
    ready(page)
    wait_for_points(page, 40)
    page.get_by_role("button", name="grow", exact=True).click()
    wait_for_points(page, 50)


def test_legend_choices_stay(chromium_page, address):
    page = chromium_page
    begin(page, address)
    page.locator("#loss .legendtoggle").first.click()
    page.wait_for_function("document.querySelector('#loss .chart-plot')._fullData[0].visible === 'legendonly'")
    page.get_by_role("button", name="grow", exact=True).click()
    wait_for_points(page, 30)
    assert page.evaluate("document.querySelector('#loss .chart-plot')._fullData[0].visible") == "legendonly"


def test_it_follows_light_dark_and_width_without_a_reload(chromium_page, address):
    page = chromium_page
    begin(page, address)
    color = "document.querySelector('#loss .chart-plot').data[2].line.color"
    assert page.evaluate(color) == palette.DENSE
    page.evaluate("document.body.classList.add('dark')")
    page.wait_for_function(f"{color} === '{palette.DARK[palette.DENSE]}'")
    page.evaluate("document.body.classList.remove('dark')")
    page.wait_for_function(f"{color} === '{palette.DENSE}'")
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(
        "(p => Math.abs(p.querySelector('svg.main-svg').clientWidth - p.clientWidth) < 2 && p.clientWidth < 690)"
        "(document.querySelector('#loss .chart-plot'))"
    )


def test_a_dark_page_opens_dark(dark_page, address):
    begin(dark_page, address)
    color = dark_page.evaluate("document.querySelector('#loss .chart-plot').data[2].line.color")
    assert color == palette.DARK[palette.DENSE]


def test_clicks_arrive_before_and_after_a_redraw(chromium_page, address):
    page = chromium_page
    page.goto(address)
    page.get_by_role("tab", name="Two").click()
    ready(page, "#cells")

    def click(row: int, column: int) -> None:
        box = page.locator("#cells .nsewdrag").first.bounding_box()
        x, y = box["x"] + box["width"] * (column + 0.5) / 4, box["y"] + box["height"] * (row + 0.5) / 4
        page.mouse.move(x - 3, y - 3)
        page.mouse.move(x, y)
        page.wait_for_selector("#cells .hoverlayer .hovertext")
        page.mouse.click(x, y)

    answer = "document.querySelector('#clicked textarea, #clicked input').value"
    click(2, 1)
    page.wait_for_function(f"{answer} === '[2, 1] 0.70 0'")
    page.get_by_role("button", name="redraw").click()
    page.wait_for_selector("#cells [data-draws='2']")
    page.get_by_role("button", name="the same").click()
    page.wait_for_selector("#cells .chart-words:has-text('Said again.')")
    page.mouse.move(5, 5)
    click(1, 0)
    page.wait_for_function(f"{answer} === '[1, 0] 0.50 0'")
    assert page.locator("#cells .chart-box").get_attribute("data-draws") == "2", "what is the same is not drawn again"


def test_pictures_are_saved_and_described(chromium_page, address):
    page = chromium_page
    begin(page, address)
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg")):
        with page.expect_download() as download:
            saves(page.locator("#loss"), kind)
        assert download.value.suggested_filename == f"loss.{kind}"
        with open(download.value.path(), "rb") as file:
            assert file.read(4) == start
    with page.expect_download() as download:
        page.locator("[data-csv=names]").click()
    table = download.value.path().read_text("utf-8-sig").splitlines()
    assert table == ["name,number", "'=1+1,-7", "'@SUM(A1),+0.5"], "words are no formulas, and numbers stay numbers"
    sentence = page.locator("#loss .chart-words").inner_text()
    assert "the floor" in sentence
    assert page.locator("#loss .chart-plot").get_attribute("aria-label") == sentence


def test_a_phone_needs_no_sideways_scrolling(phone_page, address):
    begin(phone_page, address)
    assert phone_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert phone_page.evaluate("document.querySelector('#loss .chart-plot').layout.dragmode") is False
