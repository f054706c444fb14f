// @ts-check
// Terms explained where they stand. The page's own text is left as it is: each term is underlined once per screen by a range
// beside it (CSS.highlights), so whatever draws a text may draw it again. What is clicked is looked up among the ranges.

(() => {
  "use strict";

  const SKIP = "script,style,svg,canvas,textarea,input,select,button,label,a,td,code,pre,samp,h1,h2,summary,[role=button],[role=tab]," +
    "[role=option],[role=listbox],[role=progressbar],[data-testid$=-radio-label],.checkbox-container,.label-wrap,.chart-plot," +
    ".written,.alternatives,.sample,.chips,.chip,.bet,.badge,.stat-value,[hidden],details:not([open])";
  const BOXES = ".block,.column,.row,.form,.tabitem,section"; // what may be hidden with all that is in it

  /** @typedef {{term: string, plain: string, means: string, formula?: string, names: string[],
   *   see: {tab: string, view?: string, place: string}}} Term */

  /** @type {Term[]} */
  let terms = [];
  /** @type {Map<string, Term>} */
  const named = new Map();
  /** @type {RegExp | null} */
  let names = null;
  /** @type {Map<Term, Range>} where each stands on this screen */
  let here = new Map();
  /** @type {WeakSet<Node>} */
  let marked = new WeakSet();

  const escaped = (/** @type {string} */ text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const soon = "requestIdleCallback" in window ? (/** @type {() => void} */ work) => requestIdleCallback(work, { timeout: 3000 }) : (/** @type {() => void} */ work) => setTimeout(work, 300);

  async function learn() {
    if (names) return;
    const answer = await fetch(document.getElementById("playground-glossary")?.dataset.words ?? "");
    terms = await answer.json();
    for (const term of terms) for (const name of term.names) named.set(name.toLowerCase(), term);
    const longest = [...named.keys()].sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    names = new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${longest.join("|")})(?![\\p{L}\\p{N}_-])`, "giu");
  }

  // ---- where the terms stand ----------------------------------------------------------------------------------------

  function mark() {
    if (!names || document.hidden) return;
    [here, marked] = [new Map(), new WeakSet()];
    const view = /** @type {HTMLInputElement | null} */ (document.querySelector("#inspect-panel input[name=view]:checked"));
    const seen = view?.checkVisibility() ? view.value : ""; // a name may mean another thing in a view of Inspect
    const walker = document.createTreeWalker(document.getElementById("tabs") ?? document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
      if (!(node instanceof Element)) return NodeFilter.FILTER_ACCEPT;
      return node.matches(SKIP) || (node.matches(BOXES) && !node.checkVisibility()) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
    for (let node = /** @type {Text | null} */ (walker.nextNode()); node; node = /** @type {Text | null} */ (walker.nextNode())) {
      for (const found of node.length < 3 ? [] : node.data.matchAll(names)) {
        const name = found[0].toLowerCase(), term = named.get(`${seen}: ${name}`) ?? named.get(name);
        if (!term || here.has(term)) continue;
        const range = document.createRange();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        here.set(term, range);
        if (node.parentElement) marked.add(node.parentElement);
      }
    }
    if (window.CSS?.highlights) CSS.highlights.set("glossary", new Highlight(...here.values()));
  }

  // What is open changes by what a visitor does: nothing watches the page while it draws.
  /** @type {number[]} */
  let due = [];
  function later() {
    due.forEach(clearTimeout);
    due = [700, 3000].map((time) => setTimeout(() => soon(mark), time)); // some answers take their time
  }
  for (const event of ["click", "keyup", "change", "resize"]) addEventListener(event, later, { capture: true, passive: true });
  // What a running job draws anew loses its underlines, and gets them back at once.
  document.addEventListener("playground-drawn", () => queueMicrotask(() => { // once all that came with it is there
    if ([...here.values()].some((range) => range.collapsed)) mark();
  }));
  const begin = () => setTimeout(() => soon(() => void learn().then(mark, () => {})), 1500);
  document.readyState === "complete" ? begin() : addEventListener("load", begin);

  /** The term at a place.
   * @param {MouseEvent} event @param {number} slack */
  function under({ target, clientX: x, clientY: y }, slack) {
    for (const [term, range] of marked.has(/** @type {Node} */ (target)) ? here : [])
      for (const r of range.startContainer.parentElement === target ? range.getClientRects() : [])
        if (x >= r.left - slack && x <= r.right + slack && y >= r.top - slack && y <= r.bottom + slack) return term;
    return null;
  }
  document.addEventListener("click", (event) => {
    const touch = /** @type {PointerEvent} */ (event).pointerType === "touch";
    const hit = getSelection()?.isCollapsed ? under(event, touch ? 8 : 1) : null;
    if (!hit) return;
    event.preventDefault(); // a label would hand the click on to its control
    event.stopPropagation();
    explain(hit);
  }, true);
  document.addEventListener("touchend", () => {}, { passive: true }); // some phones send clicks on plain text only then

  // ---- what explains them: one popover, which the browser closes and from which it gives back the focus ---------------

  /** @type {HTMLElement | null} */
  let box = null;

  /** @param {string} label @param {string} inside @returns {HTMLElement} */
  function open(label, inside) {
    if (!box) {
      box = document.createElement("div");
      Object.assign(box, { id: "glossary", className: "glossary", popover: "auto", role: "dialog" });
      (document.querySelector(".gradio-container .contain") ?? document.body).append(box); // gradio's style sheets end there
    }
    box.setAttribute("aria-label", label);
    box.innerHTML = `<button type="button" class="glossary-close" popovertarget="glossary" popovertargetaction="hide" aria-label="Close">×</button>${inside}`;
    if (!box.matches(":popover-open")) box.showPopover();
    /** @type {HTMLElement | null} */ (box.querySelector("a, .glossary-terms button"))?.focus({ preventScroll: true });
    return box;
  }

  /** @param {Term} term */
  function explain(term) {
    const { tab, view, place } = term.see, title = document.getElementById(`tab-${tab}-button`)?.textContent?.trim() || tab;
    const shown = open(term.term, `<h3>${escaped(term.term)}<span class="glossary-plain">${escaped(term.plain)}</span></h3>
      <p>${escaped(term.means)}</p>${term.formula ? `<p class="glossary-formula">${escaped(term.formula)}</p>` : ""}
      <p>See it in <a href="?tab=${tab}${view ? `&view=${view}` : ""}">${escaped(`${title}: ${place}`)}</a></p>`);
    /** @type {HTMLElement} */ (shown.querySelector("a")).onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      box?.hidePopover();
      window["playground"].address.open(tab, view);
    };
  }

  function list() {
    const buttons = terms.map(({ term, plain }) => `<button type="button" title="${escaped(plain)}">${escaped(term)}</button>`);
    const shown = open("Glossary", `<h3>Glossary</h3><p class="glossary-terms">${buttons.join("")}</p>
      <p class="glossary-plain">You can click underlined terms.</p>`);
    shown.querySelectorAll(".glossary-terms button").forEach((each, i) => each.addEventListener("click", () => explain(terms[i])));
  }

  document.addEventListener("click", ({ target }) => {
    if (/** @type {Element} */ (target).closest?.(".glossary-button")) learn().then(list);
  });
})();
