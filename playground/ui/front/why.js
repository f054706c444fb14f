// @ts-check
// The Generate panel's question: words of the text are selected with the mouse, with Shift and the arrows, or by a tap,
// which stands for the word around the token. The button Why? sends them along; what is copied is marked in the text.

(() => {
  "use strict";

  /** @typedef {[sample: number, first: number, last: number]} Range tokens of one sample */

  /** @param {any} root the panel's form */
  function why(root) {
    const box = root.querySelector(".written"), button = root.querySelector(".why-button");
    const marks = root.querySelector("[data-slot=why-marks]");
    /** @type {Range | null} */
    let range = null;
    /** @type {[number, number] | null} where Shift began */
    let anchor = null;

    /** @param {any} node @returns {[number, number] | null} */
    const placeOf = (node) => (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.("[data-place]")?.dataset.place.split(":").map(Number) ?? null;

    /** @param {Range | null} chosen */
    function choose(chosen) {
      range = chosen;
      mark("selected", chosen ? chosen[0] : 0, chosen ? [[chosen[1], chosen[2]]] : []);
    }

    /** @param {string} name @param {number} sample @param {[number, number][]} spans */
    function mark(name, sample, spans) {
      for (const each of box.querySelectorAll(`.${name}`)) each.classList.remove(name);
      for (const [first, last] of spans) {
        for (let at = first; at <= last; at++) box.querySelector(`[data-place="${sample}:${at}"]`)?.classList.add(name);
      }
    }

    /** The word around the token that is open, or the token where it is in none.
     * @returns {Range | null} */
    function openWord() {
      const open = placeOf(box.querySelector(".open"));
      if (!open) return null;
      const [sample, at] = open, { pieces } = root.written().samples[sample];
      const begins = (/** @type {string} */ piece) => /^[\p{L}\p{N}’']/u.test(piece), ends = (/** @type {string} */ piece) => /[\p{L}\p{N}’']$/u.test(piece);
      let first = at, last = at;
      while (first > 0 && begins(pieces[first]) && ends(pieces[first - 1])) first--;
      while (last + 1 < pieces.length && ends(pieces[last]) && begins(pieces[last + 1])) last++;
      return [sample, first, last];
    }

    document.addEventListener("selectionchange", () => {
      const picked = document.getSelection();
      if (!picked || picked.isCollapsed || !picked.rangeCount) return;
      const part = picked.getRangeAt(0);
      if (!box.contains(part.startContainer) || !box.contains(part.endContainer)) return;
      const inside = [...box.querySelectorAll("[data-place]")].filter((node) => part.intersectsNode(node));
      const places = inside.map(placeOf), sample = places[0]?.[0];
      const mine = places.filter((place) => place && place[0] === sample).map((place) => /** @type {[number, number]} */ (place)[1]);
      if (sample !== undefined && mine.length) choose([sample, mine[0], mine[mine.length - 1]]);
    });
    box.addEventListener("click", () => document.getSelection()?.isCollapsed && choose(null));
    box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Shift") return;
      const from = placeOf(event.target);
      if (!event.shiftKey) [anchor] = [null, range && event.key.startsWith("Arrow") && choose(null)];
      else if (event.key.startsWith("Arrow")) anchor ??= from;
    }, true);
    box.addEventListener("focusin", (/** @type {FocusEvent} */ event) => {
      const to = placeOf(event.target);
      if (anchor && to && anchor[0] === to[0]) choose([to[0], Math.min(anchor[1], to[1]), Math.max(anchor[1], to[1])]);
    });

    button.addEventListener("mousedown", (/** @type {Event} */ event) => event.preventDefault()); // which would undo the selection
    root.addEventListener("click", (/** @type {any} */ event) => {
      const pressed = event.target.closest(".why-button, .why-again"), text = root.written();
      if (!pressed || !text) return;
      const again = pressed.matches(".why-again") && root.panel.selection().why;
      const chosen = range ?? openWord();
      if (!again && !chosen) return;
      const [sample, first, last] = chosen ?? [0, 0, 0], { prompt, step } = text;
      const words = again || { prompt, tokens: text.samples[sample].ids, step, sample, first, last };
      pressed.dataset.with = JSON.stringify({ words });
    }, true);

    marks.addEventListener("shown", (/** @type {CustomEvent} */ { detail }) => {
      const sample = root.panel.selection().why?.sample ?? 0;
      mark("copied", sample, detail?.copied ?? []);
      mark("asked", sample, detail?.asked ? [detail.asked] : []);
    });
    root.addEventListener("written", () => {
      button.hidden = !root.written()?.samples[0]?.ids.length;
      choose(null);
    });
  }

  document.addEventListener("playground-panel", (event) => {
    const root = /** @type {CustomEvent} */ (event).detail;
    if (root.dataset.panel === "generate") why(root);
  });
})();
