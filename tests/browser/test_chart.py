"""The chart in a real browser: it keeps its node and zoom as it is redrawn, follows the page, is saved."""

import gradio as gr
import pytest

from playground.data import Baselines
from playground.figures import palette
from playground.figures.loss import Run, loss_curve
from playground.ui import theme
from playground.ui.chart import chart_place, head_html, show
from playground.ui.own_files import FRONT, served_path
from playground.ui.panel import Panels, Shown, Slot, switch
from playground.words.pictures import loss_words

from .measuring import saves

STEPS = 120
LOSS = f"""{switch("steps", "Steps", {str(n): str(n) for n in (20, 30, 40, 50)})}
<button type="button" data-step="1" data-of="steps">grow</button>
{theme.table(("name", "number"), [("=1+1", "−7"), ("@SUM(A1)", "+0.5")], save="names")}
{chart_place("loss", save_name="loss", height=300)}"""


def loss_figure(n: int) -> dict:
    steps = list(range(1, n + 1))
    losses = [3.0 / (1 + 0.05 * step) + 0.5 for step in steps]
    columns = {"step": steps, "loss": losses, "seconds": [0.1 * step for step in steps]}
    evaluations = {"step": steps[::10], "train_loss": losses[::10], "val_loss": losses[::10]}
    run = Run("this run", columns, {**evaluations, "seconds": columns["seconds"][::10]})
    rungs = [("uniform", 3.3), ("floor", 0.6)]
    return loss_curve(run, rungs, planned_steps=STEPS), loss_words(evaluations, Baselines(3.3, 3.0, 2.0, 0.6))


def loss_view(asked) -> Shown:
    steps = int(asked.selection["steps"])
    return Shown(asked.selection, {"loss": Slot(steps, lambda: show(*loss_figure(steps)))})


@pytest.fixture(scope="module")
def address(serve):
    panels = Panels(lambda visitor: visitor)
    with gr.Blocks(title="charts") as app:
        panels.add("loss", loss_view, LOSS, start={"steps": "20"}, elem_id="loss")
    scripts = "".join(
        f'<script src="{served_path(FRONT / f"{name}.js")}"></script>'
        for name in ("page", "newest", "address", "deeds", "panel")
    )
    return serve(app, head=head_html() + scripts, app_kwargs={"routes": panels.routes()})


def wait_for_points(page, count: int) -> None:
    page.wait_for_function(f"document.querySelector('#loss .chart-plot')._fullData?.[0].x.length === {count}")


def begin(page, address: str) -> None:
    page.goto(address)
    page.wait_for_function("window.playground?.panel && document.querySelector('#loss .panel')")
    page.evaluate("playground.tell({ visitor: 'me', model: 'm' })")
    page.wait_for_selector("#loss .chart-box[data-state=drawn]")
    wait_for_points(page, 20)


def test_a_growing_run_keeps_node_and_zoom(chromium_page, address):
    page = chromium_page
    begin(page, address)
    page.evaluate(
        "window.node = document.querySelector('#loss .chart-plot'); node.querySelector('svg').dataset.mine = 1"
    )
    legend = page.locator("#loss .legendtoggle").first.bounding_box()
    page.mouse.move(5, 5)  # as on a menu above the legend, which closes at the press
    page.mouse.down()
    page.mouse.move(legend["x"] + 9, legend["y"] + 9)
    page.mouse.up()
    page.wait_for_timeout(500)  # Plotly waits for a second click
    assert page.evaluate("node._fullData.every(line => line.visible === true)")
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
    page.wait_for_function("Math.abs(node.layout.xaxis.range[1] - 121.8) < 1e-6 && node._fullLayout.yaxis.autorange")
    reset.wait_for(state="hidden")


def test_it_follows_light_and_dark_and_is_saved_and_described(chromium_page, address):
    page = chromium_page
    begin(page, address)
    color = "document.querySelector('#loss .chart-plot').data[2].line.color"
    assert page.evaluate(color) == palette.DENSE
    page.evaluate("document.body.classList.add('dark')")
    page.wait_for_function(f"{color} === '{palette.DARK[palette.DENSE]}'")
    page.evaluate("document.body.classList.remove('dark')")
    page.wait_for_function(f"{color} === '{palette.DENSE}'")
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
    assert "best possible" in sentence
    assert page.locator("#loss .chart-plot").get_attribute("aria-label") == sentence
