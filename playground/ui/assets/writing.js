// The browser's half of playground/ui/tabs/generate/tokens.py: a text that grows, is then coloured, and can be clicked.
//
// A value is null, {growing: [{from, text}]} while a text is written, or {samples: [[piece]], chances: [[p]]} at its end;
// both with `press` (which press of the button asked for it), `by`, `model`, `given`, and `state`, the words below.
// What grows is sent as its last part, from a known place on: what the browser missed in between is there at the end.
// This is the body of a function that gradio calls with element, props, trigger and watch; 'select' is what it triggers.
const place = (name) => element.querySelector("." + name);
const by = place("written-by"), box = place("written"), state = place("written-state");
let shown = null; // the press whose text stands here
let tails = []; // per sample, the text that no token's element shows yet
let chances = [];
let drawing = 0;

const number = (press) => Number(String(press ?? "").split(".")[1] ?? 0);
const made = (tag, name, text) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
};
const percent = (p) => (p > 0 && p < 0.0005 ? "<0.1 %" : (100 * p).toFixed(1) + " %");

function begun(value, samples) {
  shown = value.press;
  drawing++;
  box.replaceChildren();
  tails = [];
  for (let i = 0; i < samples; i++) {
    if (i) box.append(document.createElement("hr"));
    const tail = document.createTextNode("");
    box.append(made("span", "given", value.given), tail, made("span", "caret"));
    tails.push(tail);
  }
}

function grow(value) {
  if (shown !== value.press || tails.length !== value.growing.length) begun(value, value.growing.length);
  value.growing.forEach(({ from, text }, i) => {
    const tail = tails[i], have = tail.length;
    if (from > have) tail.appendData("…".padEnd(from - have) + text);
    else if (from + text.length > have) tail.appendData(text.slice(have - from));
  });
}

// The tokens' elements are made a few milliseconds at a time, so that presses are answered in between, and put into the
// page at once: every change of a long text costs the browser the layout of all of it.
function colour(value) {
  begun(value, value.samples.length);
  chances = value.chances;
  value.samples.forEach((pieces, i) => { tails[i].data = pieces.join(""); });
  box.querySelectorAll(".caret").forEach((caret) => caret.remove());
  const mine = drawing, parts = value.samples.map(() => new DocumentFragment());
  let sample = 0, index = 0;
  const slice = () => {
    if (mine !== drawing) return;
    const until = performance.now() + 8;
    while (sample < parts.length && performance.now() < until) {
      const pieces = value.samples[sample], last = Math.min(index + 100, pieces.length);
      for (; index < last; index++) parts[sample].append(token(sample, index, pieces[index], chances[sample][index]));
      if (index === pieces.length) [sample, index] = [sample + 1, 0];
    }
    if (sample < parts.length) setTimeout(slice);
    else parts.forEach((part, i) => { underline(part, value.faults?.[i] ?? []); tails[i].replaceWith(part); });
  };
  slice();
}

// Tokens of words that cannot stand where they do, each with the reason.
function underline(part, faults) {
  for (const [first, last, why] of faults)
    for (let i = first; i <= last && i < part.children.length; i++) {
      part.children[i].classList.add("fault");
      part.children[i].title = why;
    }
}

function token(sample, index, text, chance) {
  const node = made("span");
  node.dataset.place = sample + ":" + index;
  node.setAttribute("role", "button");
  node.tabIndex = index ? -1 : 0; // one stop for the tab key per sample, arrows inside
  const bits = Math.min(-Math.log2(Math.max(chance, 1e-9)), 8); // eight and more are equally strong
  node.dataset.bits = bits.toFixed(0); // few looks: the browser works out each only once
  text.split("\n").forEach((line, i) => {
    if (i) node.append(made("span", "break", "⏎"), "\n");
    if (line) node.append(line);
  });
  if (!text) node.append("∅");
  if (!text.trim()) node.setAttribute("aria-label", text.replaceAll("\n", "line break ").replaceAll(/[^\S\n]/g, "space ").trim() || "nothing");
  return node;
}

// A text stands under the model that wrote it; where another one is chosen, that is said and the text is pale.
function named() {
  const value = props.value;
  by.hidden = !value?.by;
  if (!value?.by) return;
  const elsewhere = writing.model !== undefined && writing.model !== value.model;
  const [model, step] = (writing.weights || "").split(" ");
  const otherwise = model === value.model && Number(step) !== value.step;
  element.querySelector(".written-desk").classList.toggle("elsewhere", elsewhere || otherwise);
  const now = elsewhere ? " Another model is chosen by now: Generate asks that one."
    : otherwise ? ` That was after ${value.step} steps; it has the weights of step ${step} now, which Generate asks.` : "";
  by.textContent = value.by + now;
}

function accept(value) {
  if (value && number(value.press) < writing.latest) return; // what was asked for before is of no interest any more
  if (value?.growing) grow(value);
  else if (value?.samples) colour(value);
  named();
  if (value?.state) say(value.state);
}

function say(words, soon = false) {
  state.textContent = words;
  state.classList.toggle("soon", soon);
}

// ---- what the buttons do before the server has heard of it --------------------------------------------------------------

const writing = (window.playgroundWriting ??= {});
writing.page ??= crypto.getRandomValues(new Uint32Array(3)).join("-");
writing.latest ??= 0;
writing.waiting ??= 0;
Object.assign(writing, {
  begin() {
    writing.latest++;
    writing.waiting++;
    say("Waiting for its turn …", true);
    const top = element.getBoundingClientRect().top;
    if (innerWidth < 900 || top < 0) element.scrollIntoView({ behavior: "smooth" });
    return `${writing.page}.${writing.latest}`;
  },
  stop() {
    say("Stopping …", true);
    return `${writing.page}.${writing.latest}`;
  },
  // whether nothing is being written any more
  end() {
    writing.waiting--;
    if (!writing.waiting) say("");
    return !writing.waiting;
  },
  named,
});

// ---- what a visitor does to a token -------------------------------------------------------------------------------------

window.playgroundTokens(box, trigger);
for (const come of ["mouseover", "focusin"])
  box.addEventListener(come, (event) => {
    const node = event.target.closest?.("[data-place]");
    if (!node || node.title) return;
    const [sample, index] = node.dataset.place.split(":").map(Number);
    node.title = percent(chances[sample][index]);
  });

watch("value", () => accept(props.value));
accept(props.value);
