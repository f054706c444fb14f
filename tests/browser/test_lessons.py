"""Lessons are walked: guessed, done on the page, ticked by itself; a reload finds them again."""

import contextlib
import json
from collections.abc import Callable

import pytest
from playwright.sync_api import TimeoutError, expect

from playground.lessons.reading import Lesson, Step, all_lessons, find_lesson
from playground.lessons.vocabulary import PLACES
from tests.ui.test_lessons import WALKED_IN_A_BROWSER as WALKED

from .conftest import PATIENCE, WELCOME, opened_pages

LOOKS = "all => all ? [...document.querySelectorAll(all)].map((one) => getComputedStyle(one).visibility) : []"
SEEN = f"all => ({LOOKS})(all).every((look) => look === 'visible')"
pytestmark = pytest.mark.timeout(600)  # minutes where seven others are at work on two processors

BRINGS = {
    "ladder": "#rungs summary",
    "written text": "#generate-panel .generate-start",
    "role": "#inspect-panel [data-slot=roles] button[aria-pressed=false]",
    "four temperatures": "#generate-panel .compare-temperatures",
    "precisions": "#generate-panel .measure-precision",
    "choice": "#generate-panel .written [data-place]",
}
"""What to press so that a place changes; a place itself where it is not listed."""
QUICK = {"train.steps": 12, "pair.steps": 4, "pair.seeds": 1, "pair.n_experts": 4}


@pytest.fixture(scope="module")
def quick():
    """Lessons whose runs take a moment."""
    with pytest.MonkeyPatch.context() as patch:
        for step in (step for lesson in all_lessons() for step in lesson.steps):
            for name in step.sets.keys() & QUICK.keys():
                patch.setitem(step.sets, name, QUICK[name])
        yield


def begin(page, name: str) -> None:
    """Choose a lesson in the menu."""
    page.click("#head-learn button")
    page.click(f".lesson-list [data-lesson={name}]")
    page.wait_for_selector(f".lesson-name:has-text('Lesson {find_lesson(name).number}:')")


def insist(act: Callable[[], None], seen: Callable[[float], None]) -> None:
    """Do it again, as anybody would, where a page that was just being drawn has missed it."""
    for patience in (10_000, 20_000):
        act()
        with contextlib.suppress(TimeoutError):
            return seen(patience)
    act()
    seen(PATIENCE)


def guess(page, step: Step) -> None:
    form = page.locator(".lesson-ask")

    def answer() -> None:
        if step.ask.choices:
            form.locator("label").first.click()
        else:
            form.locator("input[type=number]").fill(f"{step.ask.number.least:g}")
        form.locator("button").click()

    insist(answer, lambda patience: form.wait_for(state="detached", timeout=patience))


def press(page, place: str, n: int = 0) -> None:
    """Press what brings a change of this place: its n-th button, or somewhere in a chart."""
    selector = BRINGS.get(place, PLACES[place].selector)
    page.wait_for_selector(selector)
    plot = page.locator(f"{selector} .nsewdrag")
    if plot.count():
        page.wait_for_timeout(800)  # the page has been scrolling there
        box = plot.first.bounding_box()
        # below the diagonal of a pattern; of four heads, one that is not chosen
        x, y = box["x"] + 0.3 * box["width"], box["y"] + (0.3 if place == "role" else 0.6) * box["height"]
        page.mouse.move(x, y)
        page.mouse.click(x, y)
    else:
        page.locator(selector).nth(n).click()


def do(page, step: Step) -> None:
    """What the step asks for, as somebody who reads it would."""
    done = step.done
    page.wait_for_selector(".lesson-here")
    buttons = {"run": "#train-button:not([disabled])", "pair": "#moe-train", "balance": "#train-unbalanced"}
    if step.doing in buttons:
        page.click(buttons[step.doing])
    elif step.point == "switch off":
        page.locator("#inspect-panel [data-slot=head-buttons] button").first.click()
    elif done.when:
        # until then the board is the model's before, with another text
        page.wait_for_function("id => playground.known.model === id", arg=f"shipped-{step.sets['model']}")
        page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        # the next round's words, or those of the last one hidden
        changed = "was => document.querySelector('#generate-panel .bet-state').innerText !== was"
        here = "() => document.querySelector('.lesson-told, #generate-panel .bet-desk:not([hidden])')?.className"
        while page.wait_for_function(here).json_value() == "bet-desk":
            before = page.inner_text("#generate-panel .bet-state")
            page.locator("#generate-panel .bet-tokens button").first.click()
            page.wait_for_function(changed, arg=before)
    elif done.place == "pattern then":
        page.locator("#inspect-panel input[name=moment]").press("ArrowLeft")
    else:
        if done.times > 1:  # the same one twice counts once
            press(page, done.place)
            press(page, done.place)
            page.wait_for_timeout(800)
            expect(page.locator(".lesson-told")).to_have_count(0)
        for n in range(done.times):
            press(page, done.place, n)


def walk(page, lesson: Lesson) -> None:
    for i, step in enumerate(lesson.steps):
        here = f".lesson-name span:has-text('step {i + 1} of {len(lesson.steps)}')"
        if i:  # by keyboard: the page may be scrolling
            insist(
                lambda: page.press(".lesson-next", "Enter"), lambda ms, at=here: page.wait_for_selector(at, timeout=ms)
            )
        page.wait_for_selector(here)
        if step.ask is not None:
            form = page.locator(".lesson-ask")
            expect(form).not_to_contain_text("…")  # numbers of the model that the step has just chosen
            covered = ", ".join(PLACES[name].selector for name in step.ask.covers)
            assert all(look == "hidden" for look in page.evaluate(LOOKS, covered)), step.id
            guess(page, step)
            trains = step.doing in ("run", "pair", "balance")  # until then, another run's results stand there
            held = bool(step.done) and (trains or step.ask.until == "done") and not page.locator(".lesson-told").count()
            assert not (held and covered) or "hidden" in page.evaluate(LOOKS, covered), step.id
            # what gradio lets change gradually is still hidden in the frame in which the cover goes
            if not held:
                page.wait_for_function(SEEN, arg=covered)
        if step.done and not page.locator(".lesson-told").count():
            do(page, step)
        page.wait_for_selector(".lesson-told", timeout=4 * PATIENCE)  # a pair may be trained beside seven others
        if step.ask is not None:
            page.wait_for_function(SEEN, arg=covered)
        page.wait_for_selector(f".lesson header li:nth-child({i + 1}) button:has-text('✓')")
    page.click(".lesson [data-do=close]")
    page.wait_for_selector(".lesson header", state="detached")
    assert "✓ done" in page.locator(f".lesson-list [data-lesson={lesson.id}]").text_content()


def test_a_lesson_is_found_again(address, open_page):
    page, lesson = open_page(), all_lessons()[5]
    page.goto(address)
    begin(page, lesson.id)
    guess(page, lesson.steps[0])
    page.click(".lesson header li:nth-child(2) button")
    page.wait_for_selector(".lesson-name span:has-text('step 2 of')")
    page.click(".lesson [data-do=fold]")
    page.wait_for_selector(".lesson.lesson-folded")
    page.goto(address)
    page.wait_for_selector(".lesson:not(.lesson-folded) header:has-text('step 2 of')")
    page.click(".lesson header li:nth-child(1) button")
    expect(page.locator(".lesson-ask")).to_have_count(0)


def test_a_first_visit_is_welcomed_once(address, open_page):
    page, box = open_page(), ".welcome:not([hidden])"
    first = f"sessionStorage.getItem('came') || localStorage.removeItem('{WELCOME}'); sessionStorage.setItem('came', 1)"
    page.add_init_script(f"if (location.protocol === 'http:') {{ {first} }}")
    page.goto(address)
    page.wait_for_load_state("networkidle")  # once the page has opened the tab of its address
    expect(page.locator(f"{box} button[data-go]:not([data-go=close])")).to_have_count(3)
    page.click("#size label >> nth=0")  # nothing moves under the pointer
    expect(page.locator(box)).to_have_count(1)
    page.click("#tab-moe-button")  # where everything moves
    expect(page.locator(box)).to_have_count(0)
    page.evaluate("document.querySelector('.welcome [data-go=play]').click()")
    expect(page.locator(".bet-state")).to_contain_text("Round 1 of")
    page.goto(address)
    page.wait_for_function("window.playground?.known?.model")
    expect(page.locator(box)).to_have_count(0)


def test_a_lesson_begins_with_its_own_model_prompt_and_head(address, open_page):
    """After one on another model, and after one in which a prompt was typed, a head switched off, a part unfolded."""
    page = open_page()
    prompt = page.locator("#inspect-panel textarea[name=prompt]")
    page.goto(f"{address}?lesson=learning-to-copy")
    page.wait_for_selector(".lesson-ask")
    begin(page, "who-looks-at-whom")
    expect(prompt).to_have_value(find_lesson("who-looks-at-whom").scene["inspect.prompt"])
    expect(page.locator("#inspect-panel .strip-head p")).to_contain_text("3.2")
    expect(page.locator("#inspect-panel .token.chosen")).to_be_visible()  # the space, before the guess
    shades = "all => all.map(one => getComputedStyle(one).getPropertyValue('--weight'))"
    assert {*page.locator("#inspect-panel .token").evaluate_all(shades)} == {"0"}
    button = page.locator("#inspect-panel [data-slot=head-buttons] button").first
    button.dispatch_event("click")  # it is covered
    expect(page.locator("#inspect-panel [data-slot=edits-in-force]")).not_to_be_empty()
    prompt.fill("the moon is")
    expect(page.locator("#inspect-panel .tokens")).to_contain_text("o")
    page.locator("#inspect-panel [data-fold=roles] > summary").click()
    expect(page.locator("#inspect-panel [data-fold=roles][open]")).to_have_count(1)
    begin(page, "why-a-cache")
    expect(page.locator("details[data-fold][open]")).to_have_count(0)
    expect(page.locator("#inspect-panel [data-slot=edits-in-force]")).to_be_empty()
    expect(prompt).to_have_value(find_lesson("why-a-cache").scene["inspect.prompt"])
    begin(page, "temperature-and-luck")
    page.wait_for_function("() => !document.querySelector('#generate-panel:is([aria-busy], :has([aria-busy]))')")
    expect(page.locator("#generate-panel .written")).to_be_empty()


def test_training_before_the_guess_says_that_it_trains(address, open_page):
    page = open_page()
    page.goto(f"{address}?lesson=first-model")
    page.wait_for_selector(".lesson-ask")
    mark = "() => getComputedStyle(document.querySelector('#curve'), '::after').content"
    assert "guess" in page.evaluate(mark) and "training" not in page.evaluate(mark)
    page.click("#train-button:not([disabled])")
    page.wait_for_function(f"() => ({mark})().includes('training')")
    guess(page, find_lesson("first-model").steps[0])
    page.wait_for_function(f"() => ({mark})() === 'none'")
    page.click(".lesson header li:last-child button")
    expect(page.locator(".lesson-still")).to_contain_text("still training")
    page.evaluate("document.querySelector('#stop-button').click()")
    expect(page.locator(".lesson-still")).to_have_count(0)  # by itself


@pytest.fixture(scope="module")
def visitor(served, quick, browser):
    """The page of one visitor who walks lesson after lesson, and begins with a link."""
    with opened_pages(browser) as create:
        page = create()
        page.goto(f"{served[1]}?lesson={WALKED[0]}")
        page.wait_for_selector(".lesson header")
        yield page


@pytest.mark.parametrize("name", WALKED)
def test_lessons_are_walked(visitor, name):
    lesson = find_lesson(name)
    if name != WALKED[0]:
        if visitor.locator(".lesson [data-do=close]").count():  # of a lesson that failed
            visitor.click(".lesson [data-do=close]")
        begin(visitor, name)
    walk(visitor, lesson)


def test_an_own_text_that_a_lesson_brings_leaves_its_settings_alone(address, open_page):
    """The text came a moment before the rest of the form, which then followed it and changed the lesson's patience."""
    page = open_page()
    page.goto(address)
    page.wait_for_selector("#status:has-text('recorded')")
    for name in ("memorising", "only-its-text"):
        begin(page, name)
        page.wait_for_timeout(500)
    page.wait_for_function("document.querySelector('#text textarea')?.value.includes('the sky is green')")
    page.wait_for_timeout(800)
    first = find_lesson("only-its-text").steps[0]
    guess(page, first)
    with page.expect_request(lambda asked: '"pressed":true' in (asked.post_data or "")) as sent:
        page.click("#train-button")
    values = json.loads(sent.value.post_data)["selection"]["values"]
    assert (values["patience"], values["steps"], values["base"]) == (0, first.sets["train.steps"], "tiny")
    page.wait_for_selector(".lesson-ticked, .lesson-told")  # all its steps are few, or it is stopped
    page.evaluate("document.querySelector('#stop-button')?.click()")  # at once: the run may end at any moment
    expect(page.locator("#stop-button")).to_have_count(0)
