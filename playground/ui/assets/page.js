// What the page does by itself: keys, a mark for its style sheet, a guard of texts that nothing has learned from yet.
(() => {
  "use strict";

  // Radios are one stop of the tab key with arrows inside wherever they share a name; gradio gives each one its own.
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Tab" && !key.startsWith("Arrow")) return;
    document.querySelectorAll("fieldset").forEach((group, i) => {
      for (const radio of group.querySelectorAll("input[type=radio]")) radio.name = group.id || `radios-${i}`;
    });
  }, true);

  // A list that the tab key leaves closes; gradio's stays open over the page, with one choice in it.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Tab" || !event.target.matches?.("input[role=combobox]")) return;
    event.stopPropagation();
    event.target.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  }, true);

  // Style sheets ask the body what is open: `data-shows` names what of this there is. Rules with :has() would do, but then
  // the browser styles every element of the page anew for each letter of a figure (40 ms each, where this takes none).
  const shown = {
    lesson: "#lessons .lesson header", board: "#class .class-head",
    running: "#stop-button", unmeasured: "#train-panel .before-first",
    comparing: "#moe-stop", unpaired: "#moe-panel .before-first",
  };
  new MutationObserver(() => {
    const names = Object.keys(shown).filter((name) => document.querySelector(shown[name])).join(" ");
    if (document.body && document.body.dataset.shows !== names) document.body.dataset.shows = names;
  }).observe(document, { childList: true, subtree: true });

  // A text whose tokens ([data-place="sample:index"]) answer a click: one stop of the tab key, arrows inside.
  window.playgroundTokens = (text, trigger) => {
    const tokenOf = (target) => target.closest?.("[data-place]");
    const placeOf = (node) => node.dataset.place.split(":").map(Number);
    function pick(node) {
      if (!node) return;
      text.querySelectorAll("[data-place].open").forEach((other) => other.classList.remove("open"));
      node.classList.add("open");
      trigger("select", { index: placeOf(node), value: node.textContent });
    }
    text.addEventListener("click", (event) => pick(tokenOf(event.target)));
    text.addEventListener("keydown", (event) => {
      const node = tokenOf(event.target);
      if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
      const [sample, index] = placeOf(node), last = text.querySelectorAll(`[data-place^="${sample}:"]`).length - 1;
      const { key } = event;
      const to = { ArrowLeft: index - 1, ArrowRight: index + 1, ArrowUp: index - 10, ArrowDown: index + 10, Home: 0, End: last }[key];
      if (to !== undefined) {
        const next = text.querySelector(`[data-place="${sample}:${Math.min(Math.max(to, 0), last)}"]`);
        [node.tabIndex, next.tabIndex] = [-1, 0];
        next.focus();
      } else if (key === "Enter" || key === " ") pick(node);
      else return;
      event.preventDefault();
    });
  };

  // A pasted text that no run has taken yet would be gone with the page: the browser asks first.
  const drafts = { text: "train-button", "moe-text": "moe-train" };
  const unsaved = new Set();
  document.addEventListener("input", ({ target }) => {
    const place = target.tagName === "TEXTAREA" ? target.closest("#text, #moe-text")?.id : null;
    if (place) unsaved[target.value.trim().length > 200 ? "add" : "delete"](place);
  });
  document.addEventListener("click", ({ target }) => {
    const pressed = target.closest?.("button")?.id;
    for (const [place, button] of Object.entries(drafts)) if (button === pressed) unsaved.delete(place);
  });
  window.addEventListener("beforeunload", (event) => {
    if (unsaved.size) event.preventDefault();
  });
})();
