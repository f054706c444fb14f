"""A panel and a chart in Chromium: the newest selection wins, typed text stays; a chart keeps its zoom and is saved."""

import asyncio
import threading
import time

import gradio as gr
import pytest
from playwright.sync_api import expect
from starlette.responses import JSONResponse
from starlette.routing import Route

from playground.data import Baselines
from playground.figures import palette
from playground.figures.loss import Run, loss_curve
from playground.ui import theme
from playground.ui.chart import chart_place, head_html, show
from playground.ui.own_files import FRONT, served_path
from playground.ui.panel import Panels, Shown, Slot, move_button, slot, switch
from playground.words.pictures import loss_words
from tests.ui.runs import until

from .measuring import saves

PAGE = f"""<div>{switch("size", "Size", {"1": "one", "2": "two", "3": "three"})}
<input type="text" name="prompt" data-resets="token">
<button type="button" data-step="1" data-of="size" id="next">Next</button>
{slot("problem", tag="p")}{slot("said")}{slot("tokens", data_arrows="")}{slot("late")}
<details data-fold="more"><summary>More</summary>{slot("more")}</details>
<p data-if="more">open</p><button type="button" data-do="count" id="count">Count</button></div>"""


def script(name: str) -> str:
    return f'<script src="{served_path(FRONT / f"{name}.js")}"></script>'


SCRIPTS = "".join(map(script, ("page", "newest", "address", "deeds", "panel")))


class Server:
    """What the view does: it waits for `go[size]`, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.go: dict[str, threading.Event] = {}
        self.counted = 0
        self.looks, self.held = 0, -1  # of the looks for news, the one that waits

    def view(self, asked) -> Shown:
        chosen = {"size": "1", **asked.selection}
        self.asked.append(chosen)
        if wait := self.go.get(chosen["size"]):
            wait.wait(20)
        if chosen.get("prompt") == "bad":
            raise ValueError("not readable")
        tokens = [move_button(str(i), {"token": i}, tabindex="0" if i == 0 else "-1") for i in range(3)]
        said = (
            f"size {chosen['size']}, token {chosen.get('token')}, counted {self.counted}, “{chosen.get('prompt', '')}”"
        )
        slots = {
            "said": Slot(said, lambda: said),
            "tokens": Slot(chosen.get("token"), lambda: "".join(tokens)),
            "late": Slot(chosen["size"], lambda: self.late(chosen["size"]), slow=True),
        }
        if chosen.get("more"):
            slots["more"] = Slot(1, lambda: "unfolded")
        return Shown(chosen, slots)

    def late(self, size: str) -> str:
        go = self.go.get(f"late {size}")
        go.wait(20) if go else time.sleep(0.3)
        return f"late {size}"

    def count(self, asked) -> None:
        self.counted += 1

    async def news(self, request) -> JSONResponse:
        self.looks += 1
        word = str(self.counted)
        while self.looks == self.held:
            await asyncio.sleep(0.02)
        return JSONResponse({"word": word, "pause": None})


@pytest.fixture(scope="module")
def served_panel(serve):
    server = Server()
    panels = Panels(lambda visitor: visitor)
    with gr.Blocks() as app:
        panels.add("tried", server.view, PAGE, start={"size": "1", "prompt": "", "token": None}, follows=True,
                   elem_id="tried")  # fmt: skip
    panels.act("count", server.count)
    routes = {"routes": [*panels.routes(), Route("/news", server.news)]}
    return server, serve(app, head=head_html() + SCRIPTS + script("news"), app_kwargs=routes)


@pytest.fixture
def opened(served_panel, chromium_page):
    server, address = served_panel
    server.asked.clear()
    server.go.clear()
    server.held = -1
    chromium_page.goto(address)
    chromium_page.wait_for_function("window.playground?.panel && document.querySelector('#tried .panel')")
    chromium_page.evaluate("playground.tell({ visitor: 'me', model: 'm' })")
    expect(chromium_page.locator("[data-slot=said]")).to_contain_text("size 1")
    return server, chromium_page


def test_the_newest_selection_wins_however_slow_the_older_answers_are(opened):
    server, page = opened
    server.go |= {"2": threading.Event(), "late 3": threading.Event()}
    for name in ("two", "three"):
        page.get_by_text(name, exact=True).click()
    expect(page.locator("[data-slot=said]")).to_contain_text("size 3")
    server.go["2"].set()
    page.wait_for_timeout(400)
    expect(page.locator("[data-slot=said]")).to_contain_text("size 3")
    expect(page.locator("#tried [aria-busy=true]")).to_have_attribute("data-slot", "late")  # only what is awaited
    server.go["late 3"].set()
    expect(page.locator("[data-slot=late]")).to_have_text("late 3")
    assert page.locator("input[value='3']").is_checked()


def test_what_is_typed_while_an_answer_is_awaited_stays_and_is_read(opened):
    server, page = opened
    page.locator("[data-slot=tokens] button").nth(2).click()
    expect(page.locator("[data-slot=said]")).to_contain_text("token 2")
    server.go["2"] = threading.Event()
    page.get_by_text("two", exact=True).click()
    page.locator("input[name=prompt]").press_sequentially("abc", delay=20)
    server.go["2"].set()
    expect(page.locator("[data-slot=said]")).to_contain_text("size 2, token None, counted 0, “abc”")
    assert page.locator("input[name=prompt]").input_value() == "abc"


def test_a_refusal_goes_with_the_next_answer_and_a_part_that_is_opened_then_stays_open(opened):
    _, page = opened
    page.locator("input[name=prompt]").fill("bad")
    expect(page.locator("[data-slot=problem]")).to_have_text("Not readable.")
    page.locator("input[name=prompt]").fill("good")
    expect(page.locator("[data-slot=problem]")).to_have_text("")
    expect(page.locator("[data-slot=said]")).to_contain_text("“good”")
    page.evaluate("""() => {
      document.querySelector("#tried summary").click();
      document.querySelector("#tried .panel").panel.take({ slots: {} });
    }""")
    expect(page.locator("[data-slot=more]")).to_have_text("unfolded")
    expect(page.locator("#tried details")).to_have_attribute("open", "")


def test_a_panel_that_is_left_is_busy_no_more_and_one_hidden_for_less_than_a_frame_asks(opened):
    server, page = opened
    expect(page.locator("[data-slot=late]")).to_have_text("late 1")
    server.go["2"] = threading.Event()
    page.get_by_text("two", exact=True).click()
    until(lambda: server.asked[-1]["size"] == "2")
    page.evaluate("document.querySelector('#tried').style.display = 'none'")
    page.evaluate("playground.tell({ model: 'another' })")
    server.go["2"].set()
    expect(page.locator("#tried [aria-busy=true]")).to_have_count(0)
    page.evaluate("document.querySelector('#tried').style.display = ''")
    expect(page.locator("[data-slot=late]")).to_have_text("late 2")
    asked = len(server.asked)
    page.evaluate("""() => {
      const shown = document.querySelector("#tried").style;
      shown.display = "none";
      playground.tell({ model: "a third" });
      shown.display = "";
    }""")
    until(lambda: len(server.asked) > asked)


def test_news_that_come_while_an_answer_is_awaited_are_looked_at_after_it(opened):
    server, page = opened
    server.go["2"] = threading.Event()
    page.get_by_text("two", exact=True).click()
    until(lambda: server.asked[-1]["size"] == "2")  # and the answer is awaited
    asked = len(server.asked)
    page.evaluate("document.dispatchEvent(new CustomEvent('playground-news'))")
    server.go["2"].set()
    expect(page.locator("[data-slot=late]")).to_have_text("late 2")
    until(lambda: len(server.asked) >= asked + 2)
    page.wait_for_timeout(400)
    assert len(server.asked) == asked + 2, "for the slow slot, and for the news"


def test_whoever_begins_something_while_news_are_under_way_hears_of_it(opened):
    server, page = opened
    expect(page.locator("[data-slot=late]")).to_have_text("late 1")
    server.held = server.looks + 1
    page.evaluate("void playground.news.look()")  # its answer is from before
    page.wait_for_timeout(200)
    server.counted += 1
    page.evaluate("void playground.news.look()")
    server.held = -1
    expect(page.locator("[data-slot=said]")).to_contain_text(f"counted {server.counted}")


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
def charts(serve):
    panels = Panels(lambda visitor: visitor)
    with gr.Blocks(title="charts") as app:
        panels.add("loss", loss_view, LOSS, start={"steps": "20"}, elem_id="loss")
    return serve(app, head=head_html() + SCRIPTS, app_kwargs={"routes": panels.routes()})


def wait_for_points(page, count: int) -> None:
    page.wait_for_function(f"document.querySelector('#loss .chart-plot')._fullData?.[0].x.length === {count}")


def begin(page, charts: str) -> None:
    page.goto(charts)
    page.wait_for_function("window.playground?.panel && document.querySelector('#loss .panel')")
    page.evaluate("playground.tell({ visitor: 'me', model: 'm' })")
    page.wait_for_selector("#loss .chart-box[data-state=drawn]")
    wait_for_points(page, 20)


def test_a_growing_run_keeps_node_and_zoom(chromium_page, charts):
    page = chromium_page
    begin(page, charts)
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
    box = page.locator("#loss .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 180, steps=6)
    page.mouse.up()
    page.wait_for_function("node.layout.xaxis.range[1] < 121")
    zoom = page.evaluate("[node.layout.xaxis.range, node.layout.yaxis.range].flat()")
    for count in (30, 40, 50):
        page.get_by_role("button", name="grow", exact=True).click()
        wait_for_points(page, count)
    assert page.evaluate("document.querySelector('#loss .chart-plot') === window.node")
    assert page.evaluate("node.querySelector('svg').dataset.mine") == "1"
    assert page.evaluate("[node.layout.xaxis.range, node.layout.yaxis.range].flat()") == pytest.approx(zoom)
    drawn = page.evaluate("Array.from(node._fullData[0].y)")
    assert drawn == pytest.approx([3.0 / (1 + 0.05 * step) + 0.5 for step in range(1, 51)], abs=1e-5)
    page.mouse.dblclick(box["x"] + 60, box["y"] + 60)
    page.wait_for_function("Math.abs(node.layout.xaxis.range[1] - 121.8) < 1e-6 && node._fullLayout.yaxis.autorange")


def test_it_follows_light_and_dark_and_is_saved_and_described(chromium_page, charts):
    page = chromium_page
    begin(page, charts)
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
