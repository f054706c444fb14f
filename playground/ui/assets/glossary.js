// Terms explained where they stand. The page's own text is left as it is: names are underlined by ranges beside it
// (CSS.highlights), so whatever draws a text may draw it again. What is clicked is looked up among those ranges.
(() => {
  "use strict";
  const SKIP = "script,style,svg,canvas,textarea,input,select,button,label,a,td,code,pre,samp,h1,h2,summary,[role=button],[role=tab]," +
    "[role=option],[role=listbox],[role=progressbar],[data-testid$=-radio-label],.checkbox-container,.label-wrap,.chart-plot," +
    ".written,.alternatives,.sample,.chips,.chip,.bet,.badge,.stat-value,#glossary,[hidden]";
  const BOXES = ".block,.column,.row,.form,.tabitem,details";
  const PANELS = ".tabitem,#page-head";
  let terms = [], named = new Map(), names = null, box = null, back = null;
  let marked = new WeakMap(), listed = [];

  const soon = window.requestIdleCallback ? (work) => requestIdleCallback(work, { timeout: 3000 }) : (work) => setTimeout(work, 300);
  const made = (tag, name, words) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (words !== undefined) node.textContent = words;
    return node;
  };

  async function learn() {
    if (names) return;
    const answer = await fetch(document.getElementById("playground-glossary").dataset.words);
    terms = await answer.json();
    for (const term of terms) for (const name of term.names) named.set(name.toLowerCase(), term);
    const longest = [...named.keys()].sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    names = new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${longest.join("|")})(?![\\p{L}\\p{N}_-])`, "giu");
  }

  // ---- where the terms stand ----------------------------------------------------------------------------------------

  function mark() {
    if (!names || document.hidden) return;
    const seen = new Map(), ranges = [];
    marked = new WeakMap();
    listed = [];
    const walker = document.createTreeWalker(document.getElementById("tabs") ?? document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
      if (node.nodeType === 3) return NodeFilter.FILTER_ACCEPT;
      if (node.matches(SKIP)) return NodeFilter.FILTER_REJECT;
      return node.matches(BOXES) && node.checkVisibility && !node.checkVisibility() ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.length < 3) continue;
      for (const found of node.data.matchAll(names)) {
        const term = named.get(found[0].toLowerCase()), panel = node.parentElement.closest(PANELS);
        const known = seen.get(panel) ?? seen.set(panel, new Set()).get(panel);
        if (known.has(term)) continue;
        known.add(term);
        const range = document.createRange();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        ranges.push(range);
        listed.push({ term, panel });
        const there = marked.get(node.parentElement) ?? [];
        there.push({ term, range });
        marked.set(node.parentElement, there);
      }
    }
    if (window.CSS?.highlights) CSS.highlights.set("glossary", new Highlight(...ranges));
  }

  // What is open changes by what a visitor does: nothing watches the page while it draws.
  let due = [];
  function later() {
    due.forEach(clearTimeout);
    due = [700, 3000].map((wait) => setTimeout(() => soon(mark), wait)); // some answers take their time
  }
  for (const event of ["click", "keyup", "change", "resize"]) addEventListener(event, later, { capture: true, passive: true });
  // gradio may bring this script before or after the page has loaded
  const begin = () => setTimeout(() => soon(() => learn().then(mark, () => {})), 1500);
  document.readyState === "complete" ? begin() : addEventListener("load", begin);

  function under({ target, clientX: x, clientY: y }, slack) {
    for (const { term, range } of marked.get(target) ?? [])
      for (const r of range.getClientRects())
        if (x >= r.left - slack && x <= r.right + slack && y >= r.top - slack && y <= r.bottom + slack) return { term, rect: r };
    return null;
  }
  document.addEventListener("mousemove", (event) => {
    if (marked.has(event.target)) event.target.style.cursor = under(event, 0) ? "help" : "";
  }, { passive: true });
  document.addEventListener("click", (event) => {
    const hit = getSelection().isCollapsed ? under(event, event.pointerType === "touch" ? 8 : 1) : null;
    if (!hit) return;
    event.preventDefault(); // a label would hand the click on to its control
    event.stopPropagation();
    explain(hit.term, hit.rect);
  }, true);
  document.addEventListener("touchend", () => {}, { passive: true }); // some phones send clicks on plain text only then

  // ---- the box ------------------------------------------------------------------------------------------------------

  function shown() {
    if (!box) {
      box = made("div", "glossary");
      Object.assign(box, { id: "glossary", popover: "auto", tabIndex: -1 });
      box.setAttribute("role", "dialog");
      box.addEventListener("toggle", ({ newState }) => {
        if (newState === "closed" && (box.contains(document.activeElement) || document.activeElement === document.body)) back?.focus?.({ preventScroll: true });
      });
      (document.querySelector(".gradio-container .contain") ?? document.body).append(box); // gradio's style sheets end there
    }
    if (!box.matches(":popover-open")) back = document.activeElement;
    box.replaceChildren();
    const close = made("button", "glossary-close", "×");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.onclick = () => box.hidePopover();
    box.append(close);
    return box;
  }

  function open(rect) {
    if (!box.matches(":popover-open")) box.showPopover();
    box.style.cssText = "";
    if (rect && innerWidth > 640) {
      const { width, height } = box.getBoundingClientRect();
      const top = rect.bottom + 8 + height < innerHeight ? rect.bottom + 8 : Math.max(rect.top - 8 - height, 8);
      Object.assign(box.style, { inset: "auto", margin: 0, top: `${top}px`, left: `${Math.max(Math.min(rect.left, innerWidth - width - 16), 8)}px` });
    }
    box.focus({ preventScroll: true });
  }

  function explain(term, rect) {
    const panel = shown();
    panel.setAttribute("aria-label", term.term);
    const title = made("h3", "", term.term);
    title.append(made("span", "glossary-plain", term.plain));
    panel.append(title, made("p", "", term.means));
    if (term.formula) panel.append(made("p", "glossary-formula", term.formula));
    const { tab, view, place } = term.see, link = made("a", "", `${titleOf(`tab-${tab}`) || tab}: ${place}`), see = made("p", "glossary-see", "See it in ");
    link.href = `?tab=${tab}${view ? `&view=${view}` : ""}`;
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(term.see, link.href);
    };
    see.append(link);
    const all = made("button", "glossary-all", "All terms");
    all.type = "button";
    all.onclick = () => list();
    panel.append(see, all);
    open(rect);
  }

  // `near`: what has the focus; its panel's terms come first
  function list(near) {
    const panel = shown(), home = near?.closest?.(PANELS);
    panel.setAttribute("aria-label", "Glossary");
    panel.append(made("h3", "", "Glossary"));
    const here = [...new Set(listed.filter((each) => home && each.panel === home).concat(listed).map((each) => each.term))];
    const find = made("input", "glossary-find");
    Object.assign(find, { type: "search", placeholder: "Find a term" });
    find.setAttribute("aria-label", "Find a term");
    const groups = made("div", "glossary-groups");
    const fill = () => {
      const wanted = find.value.trim().toLowerCase();
      const fits = (term) => [term.term, term.plain, ...term.names].some((words) => words.toLowerCase().includes(wanted));
      groups.replaceChildren();
      for (const [title, group] of [[home ? "Here, then elsewhere on this screen" : "On this screen", here], ["All", terms]]) {
        const left = group.filter(fits);
        if (!left.length) continue;
        const words = made("p", "glossary-terms");
        for (const term of left) {
          const button = made("button", "", term.term);
          Object.assign(button, { type: "button", title: term.plain, onclick: () => explain(term) });
          words.append(button);
        }
        groups.append(made("h4", "", title), words);
      }
      if (!groups.children.length) groups.append(made("p", "", "No term of this page is called so."));
    };
    find.addEventListener("input", fill);
    fill();
    const hint = made("p", "glossary-plain", "Underlined terms can be clicked. By keys: ? lists the terms beside whatever has the focus.");
    panel.append(find, groups, hint);
    open();
  }

  const ask = (near) => learn().then(() => { mark(); list(near); });
  document.addEventListener("click", ({ target }) => { if (target.closest?.(".glossary-button")) ask(null); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=radio],[type=checkbox],[type=range]),textarea,select,[contenteditable]");
    if (event.key !== "?" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    ask(event.target);
  });

  // ---- going there --------------------------------------------------------------------------------------------------

  const titleOf = (id) => document.getElementById(`${id}-button`)?.textContent.trim() ?? "";
  async function until(found) {
    for (let tries = 0; tries < 60; tries++) {
      const node = found();
      if (node) return node;
      await new Promise((then) => setTimeout(then, 50));
    }
    return null;
  }

  async function go({ tab, view, at, fold }, address) {
    back = null;
    box.hidePopover();
    const button = await until(() => document.getElementById(`tab-${tab}-button`));
    if (!button) return location.assign(address); // on a phone it may hide behind a menu
    if (button.getAttribute("aria-selected") !== "true") button.click();
    if (view) (await until(() => document.querySelector(`#${at} input[name=view][value="${view}"]`)))?.click();
    const place = await until(() => fold ? document.querySelector(`#${at} [data-fold="${fold}"]`) : document.getElementById(at));
    if (!place) return;
    for (let each = place; each; each = each.parentElement) {
      const title = each.querySelector(":scope > .label-wrap");
      if (title && !title.classList.contains("open")) title.click();
      if (each.localName === "details") /* one of a panel */ each.open = true;
    }
    setTimeout(() => {
      place.scrollIntoView({ block: place.clientHeight > innerHeight ? "start" : "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      place.classList.add("glossary-there");
      setTimeout(() => place.classList.remove("glossary-there"), 2500);
    }, 100);
  }
})();
