// The browser's half of playground/ui/lessons.py: shows the strip, outlines the place that a step points at, and tells
// when what it waits for was pressed, shown or changed, or when the server should look whether it is done.
// This is the body of a function that gradio calls with element, props, trigger and watch; 'select' is what it triggers.
const box = element.querySelector(".lesson"), list = element.querySelector(".lesson-list");
const OPEN = "transformer-playground-lesson"; // in localStorage: whether a lesson is open, so that a page without one asks nothing
let shown = null; // the whole value that stands here
let held = null, kept = null; // what of the strip is being pressed, and what is to be shown after that
let asked = 0; // how many questions were asked
let asking = 0; // the timer of an answer that is awaited; 0 for none
let waiting = []; // what to tell when the answer has come
let outlined = null;
let opened = false; // once all handlers of a page that opens are over: what they fill in does not undo what a step sets
let pressed = new Set(), before = null, chosen = 0, heard = null, touched = 0, told = 0;
const TICKS = "transformer-playground-lesson-ticks"; // in localStorage: steps done by lesson, for the list of a page that asks nothing
const hidden = document.head.appendChild(document.createElement("style"));

const ask = (what) => {
  if (!asking && opened) send(what, 3);
  else if (what.do !== "look") waiting.push(what);
};
// What is lost, as may happen while a page opens, is asked again, with the progress that it was asked with; of several
// answers to the same question the first counts.
function send(what, times) {
  what.ask ??= ++asked;
  what.progress ??= shown?.progress;
  box.setAttribute("aria-busy", "true");
  trigger("select", what);
  asking = setTimeout(() => (times > 1 ? send(what, times - 1) : accept(null)), 8000);
}
const visible = (node) => Boolean(node && node.getClientRects().length);
const find = (selector) => [...document.querySelectorAll(selector)].find(visible) ?? null;
const contents = (node) => {
  if (!visible(node)) return "";
  const state = node.querySelector(".chart-box")?.dataset.state;
  const charts = node.querySelectorAll(".js-plotly-plot .trace, .js-plotly-plot .hm, .js-plotly-plot image").length;
  if (state === "waiting" && !charts) return "";
  // innerText leaves out what a cover hides
  return charts ? charts + (node.querySelector(".chart-words")?.textContent ?? "") : (node.innerText || node.textContent).trim();
};

// ---- what is shown ----------------------------------------------------------------------------------------------------

function accept(value) {
  if (value && (!asking || value.asked !== asked)) return;
  clearTimeout(asking);
  asking = 0;
  box.removeAttribute("aria-busy");
  if (value?.whole && held) kept = value;
  else if (value?.whole) show(value);
  if (waiting.length) ask(waiting.shift());
}

// A button or choice that is drawn anew, or scrolled away, between press and release would not be clicked: nothing is
// drawn meanwhile, and what was pressed is clicked wherever it has gone.
box.addEventListener("pointerdown", ({ target, clientX, clientY }) => {
  held = { node: target.closest("button, label"), at: [clientX, clientY] };
});
box.addEventListener("click", ({ target }) => held?.node?.contains(target) && (held.node = null), true);
addEventListener("pointerup", ({ clientX, clientY }) => held && setTimeout(release, 0, Math.hypot(clientX - held.at[0], clientY - held.at[1]) < 8), true);
addEventListener("pointercancel", () => held && release(false), true);
function release(meant) {
  const node = meant && held?.node;
  held = null;
  if (node && node.isConnected) node.click();
  if (kept) show(kept);
  kept = null;
}

function show(value) {
  const same = shown && shown.open === value.open && shown.step === value.step;
  const inside = box.contains(document.activeElement);
  const ticked = Boolean(box.querySelector(".lesson-told"));
  shown = value;
  localStorage[value.open ? "setItem" : "removeItem"](OPEN, "yes");
  localStorage.setItem(TICKS, JSON.stringify(value.ticks));
  tick(value.ticks);
  cover(value.covers ?? {});
  box.hidden = !value.html;
  const open = Boolean(box.querySelector(".lesson-ask"));
  const draft = same && box.querySelector(".lesson-ask") ? guessed() : null;
  const scrolled = same ? body()?.scrollTop : 0;
  box.innerHTML = value.html;
  if (scrolled && body()) body().scrollTop = scrolled;
  fold(same && !value.arrives && box.classList.contains("lesson-folded"));
  if (draft !== null) restore(draft);
  if (!same || value.arrives || value.points) window.playground?.form?.settled("train_form");
  if (!same || value.arrives) {
    pressed = new Set();
    chosen = 0;
    before = null;
    heard = null;
    touched = performance.now(); // what a step sets takes a while to be drawn
  }
  outline();
  if (value.html && !same) list.hidePopover();
  if (value.arrives) {
    foldAll();
    box.querySelector("h3")?.focus({ preventScroll: true });
    setTimeout(() => reveal(false), 400);
  } else if (value.points || (same && open && value.awaits && !box.querySelector(".lesson-ask"))) setTimeout(() => reveal(Boolean(value.points)), 400);
  else if (inside) (box.querySelector(".lesson-told") ?? box.querySelector("button[data-do=fold]"))?.focus({ preventScroll: true });
  const answer = box.querySelector(".lesson-told");
  if (same && !ticked && answer) {
    body().scrollTop += answer.getBoundingClientRect().top - body().getBoundingClientRect().top;
    setTimeout(() => reveal(false), 400);
  }
}
function fold(folded) {
  box.classList.toggle("lesson-folded", folded);
  const button = box.querySelector("[data-do=fold]");
  if (button) [button.textContent, button.ariaExpanded] = folded ? ["Expand", "false"] : ["Collapse", "true"];
}
// Only the parts that the step needs stay unfolded.
function foldAll() {
  const needed = [shown.point?.at, shown.awaits?.at].flat().filter(Boolean);
  for (const each of document.querySelectorAll("details[data-fold][open]")) {
    if (!needed.some((at) => each.querySelector(at))) each.open = false;
  }
}
const body = () => box.querySelector(".lesson-step");

function tick(ticks) {
  for (const button of list.querySelectorAll("[data-lesson]")) {
    const steps = button.querySelector("[data-steps]"), all = Number(steps.dataset.steps), done = Math.min(ticks[button.dataset.lesson] ?? 0, all);
    steps.textContent = done === all ? "✓ done" : done ? `${done} of ${all} done` : "";
    button.toggleAttribute("aria-current", button.dataset.lesson === shown?.open);
  }
}

// A rule, not a mark on what is there now: it holds for whatever gradio draws anew.
const COVER = {
  guess: "after your guess", begun: "when training begins", done: "when this step is done", later: "a later step asks this",
};
function cover(covers) {
  const selectors = Object.values(covers).flat(), all = selectors.join(", "), of = (more) => selectors.map((one) => one + more).join(", ");
  let rule = !all ? "" : `:is(${all}) { position: relative !important; } :is(${all}), :is(${all}) * { visibility: hidden !important; }
    ${of("::after")} { content: "${COVER.guess}"; visibility: visible; position: absolute; inset: 0; z-index: 2; display: grid; place-items: center;
    overflow: hidden; border-radius: 8px; font: 700 0.75rem/1.3 var(--font); color: var(--body-text-color-subdued);
    background: repeating-linear-gradient(-45deg, var(--background-fill-secondary) 0 8px, var(--background-fill-primary) 8px 16px); }
    .tokens:is(${all}), .tokens:is(${all}) * { visibility: visible !important; } /* the letters, but not their shades */
    .tokens:is(${all})::after { content: none !important; }
    .tokens:is(${all}) .token { --weight: 0 !important; border-bottom: 1px solid var(--border-color-primary); padding-bottom: 3px; font-weight: 400; pointer-events: none; }
    [data-shows~="running"] #tab-train :is(${all})::after { content: "training … guess to see it"; }`;
  for (const first of ["begun", "done", "later"]) {
    if (covers[first]?.length) rule += `:is(${covers[first].join(", ")})::after { content: "${COVER[first]}" !important; }`;
  }
  if (hidden.textContent === rule) return;
  hidden.textContent = rule;
  before = null; // what stood behind it has not changed by coming to light
}

// The strip stays over the page: nothing is scrolled under it, and where it grows it makes room for what it points at.
let height = 0;
new ResizeObserver(() => {
  const now = box.hidden ? 0 : box.offsetHeight, grown = now - height;
  height = now;
  document.documentElement.style.scrollPaddingTop = now ? now + 16 + "px" : "";
  const over = outlined && visible(outlined) ? box.getBoundingClientRect().bottom + 8 - withTitle(outlined).top : 0;
  if (over > 0 && over <= grown + 8) scrollBy(0, -over);
}).observe(box);

// Where a place is: with the title of its card, where there is room.
function withTitle(node) {
  const card = node.closest(".card");
  return (card && box.offsetHeight + 16 + card.offsetHeight <= innerHeight ? card : node).getBoundingClientRect();
}

// The place that the step points at keeps its outline whatever gradio draws anew.
function outline() {
  const node = shown?.point ? find(shown.point.at) : null;
  if (outlined && outlined !== node) outlined.classList.remove("lesson-here");
  outlined = node;
  if (node && !node.classList.contains("lesson-here")) node.classList.add("lesson-here");
}

function reveal(focus, tries = 20) {
  if (!shown?.point) return;
  if (held) return void setTimeout(() => reveal(focus, tries), 250);
  for (const each of document.querySelectorAll(`details[data-fold]:not([open]):has(${shown.point.at.split(" ")[0]})`)) each.open = true;
  const node = find(shown.point.at);
  const busy = document.querySelector("[aria-busy=true]:not(.lesson)"); // what stands above it may still grow
  if (tries && (!node || busy)) return void setTimeout(() => reveal(focus, tries - 1), 250);
  if (!node) return;
  outline();
  const top = box.offsetHeight + 16, there = withTitle(node);
  if (there.top < top || there.bottom > innerHeight) scrollTo({ top: Math.max(0, scrollY + there.top - top), behavior: "smooth" });
  if (!focus) return;
  const able = [node, ...node.querySelectorAll("*")].find((one) => one.matches("button:not([disabled]), input, textarea, [tabindex='0']") && visible(one));
  (able ?? (node.tabIndex = -1, node)).focus({ preventScroll: true });
}

// ---- a guess ------------------------------------------------------------------------------------------------------------

function guessed() {
  const number = box.querySelector(".lesson-ask input[type=number]");
  return number ? number.valueAsNumber : box.querySelector(".lesson-ask input:checked")?.value ?? null;
}
function restore(guess) {
  for (const input of box.querySelectorAll(".lesson-ask input")) {
    if (input.type === "radio") input.checked = input.value === guess;
    else input.value = guess;
  }
}

// a number can be typed or slid
box.addEventListener("input", ({ target }) => {
  for (const input of target.closest(".lesson-slider")?.children ?? []) if (input !== target) input.value = target.value;
});
box.addEventListener("submit", (event) => {
  event.preventDefault();
  const guess = guessed();
  if (guess === null) box.querySelector(".lesson-ask input")?.focus();
  else ask({ do: "guess", guess });
});
element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button || button.disabled) return;
  if (button.dataset.lesson) ask({ do: "open", lesson: button.dataset.lesson });
  else if (button.dataset.go) ask({ do: "go", step: Number(button.dataset.go) });
  else if (button.dataset.do === "fold") fold(!box.classList.contains("lesson-folded"));
  else if (button.dataset.do) {
    if (button.dataset.do === "close" && location.search.includes("lesson=")) history.replaceState(null, "", location.pathname);
    ask({ do: button.dataset.do });
  }
});

// ---- what is done on the page ---------------------------------------------------------------------------------------------

// What changes by itself, such as a picture that is still being drawn, does not count: only what does after a touch.
const touch = (event) => {
  if (element.contains(event.target)) return;
  touched = performance.now();
  if (shown?.awaits?.kind === "changed") before ??= contents(find(shown.awaits.at));
};
for (const kind of ["input", "keydown"]) document.addEventListener(kind, touch, true);
document.addEventListener("click", (event) => {
  touch(event);
  const awaits = shown?.awaits;
  const there = shown?.point && event.target.closest?.(`button:is(${shown.point.at}), ${shown.point.at} :is(.chart-plot, [data-place])`);
  if (awaits?.kind === "changed" && there) chosen = performance.now();
  if (awaits?.kind !== "pressed" || !event.target.closest?.(awaits.at)) return;
  pressed.add((event.target.closest("button, summary") ?? event.target).textContent); // the same one twice counts once
  if (pressed.size >= awaits.times) ask({ do: "did", step: shown.step });
}, true);

setInterval(() => {
  if (!shown?.open || document.hidden) return;
  outline();
  const awaits = shown.awaits;
  if (asking) return;
  if (awaits && (awaits.kind === "shown" || awaits.kind === "changed")) {
    const now = contents(find(awaits.at));
    // a click on what is chosen already changes nothing, and a model may write the same text again
    const same = chosen && performance.now() - chosen > 2500 && !document.querySelector("[aria-busy=true]:not(.lesson)");
    if (now && (awaits.kind === "shown" || (before !== null && now !== before) || same)) return ask({ do: "did", step: shown.step });
  }
  const listens = [...(awaits?.kind === "told" ? awaits.at : []), shown.live].filter(Boolean);
  const waits = box.querySelector(".lesson-still") ? Math.floor(performance.now() / 4000) : ""; // for a number: asks again
  if (awaits?.kind !== "told" && !listens.length && !waits) return;
  // what a touch does may take a while: look again a few times after it
  const after = touched + "+" + Math.min(Math.floor((performance.now() - touched) / 2500), 4);
  const now = [...listens.map((selector) => contents(find(selector))), after, waits].join("|");
  if (now === heard || performance.now() - told < 1200) return;
  heard = now;
  told = performance.now();
  ask({ do: "look", seen: shown.key });
}, 400);

// ---- a page that opens ------------------------------------------------------------------------------------------------------

try {
  tick(JSON.parse(localStorage.getItem(TICKS)) ?? {});
} catch {} // nobody has done one here

let loaded = 0;
function begin() {
  if (opened) return;
  opened = true;
  const linked = new URLSearchParams(location.search).has("lesson");
  if (linked || localStorage.getItem(OPEN)) waiting.unshift({ do: "resume", linked });
  if (waiting.length) ask(waiting.shift());
}
window.playgroundLessons = { ready: (all) => void (++loaded === all && begin()) };
setTimeout(begin, 8000); // where a handler of the page gave no answer

watch("value", () => accept(props.value));

// The menu's other entries: the class (front/class.js) and the glossary come by themselves.
list.addEventListener("click", ({ target }) => {
  if (target.closest("button")) list.hidePopover();
});
