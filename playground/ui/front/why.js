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

    // by the mouse: from the token where it was pressed to the one where it is now
    /** @type {[number, number] | null} */
    let pressed = null;
    let dragged = false;
    box.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      [pressed, dragged] = [event.button === 0 && event.pointerType === "mouse" ? placeOf(event.target) : null, false];
    });
    box.addEventListener("mouseover", (/** @type {MouseEvent} */ event) => {
      const to = placeOf(event.target);
      if (!pressed || !(event.buttons & 1) || !to || to[0] !== pressed[0]) return;
      dragged ||= to[1] !== pressed[1];
      if (dragged) choose([to[0], Math.min(pressed[1], to[1]), Math.max(pressed[1], to[1])]);
    });
    box.addEventListener("click", (/** @type {Event} */ event) => {
      if (dragged) event.stopImmediatePropagation(); // the end of a drag chooses no token
      else choose(null);
      dragged = false;
    }, true);
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

    root.addEventListener("click", (/** @type {any} */ event) => {
      const asks = event.target.closest(".why-button, .why-again"), text = root.written();
      if (!asks || !text) return;
      const again = asks.matches(".why-again") && root.panel.selection().why;
      const chosen = range ?? openWord();
      if (!again && !chosen) return;
      const [sample, first, last] = chosen ?? [0, 0, 0], { prompt, step } = text;
      const words = again || { prompt, tokens: text.samples[sample].ids, step, sample, first, last };
      asks.dataset.with = JSON.stringify({ words });
    }, true);

    marks.addEventListener("shown", (/** @type {CustomEvent} */ { detail }) => {
      const sample = root.panel.selection().why?.sample ?? 0;
      mark("copied", sample, detail?.copied ?? []);
      box.toggleAttribute("data-asked", Boolean(detail?.asked));
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
