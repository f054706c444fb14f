// @ts-check
// The Generate panel's question: words of the text are selected with the mouse, by a double click, with Shift and the
// arrows, or by a tap, which stands for the word around the token. A selection holds whole words. The button Why? sends
// them along; what is copied is marked in the text.

(() => {
  "use strict";

  /** @typedef {[sample: number, first: number, last: number]} Range tokens of one sample */

  /** A letter of a script that puts something between words. */
  const LETTER = /(?![\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}])[\p{L}\p{M}\p{N}’']/u;

  /** @param {number} p */
  const percent = (p) => (p > 0 && p < 0.0005 ? "<0.1 %" : p > 0.9995 && p < 0.999999 ? ">99.9 %" : `${(100 * p).toFixed(1)} %`);

  /** @param {any} root the panel's form */
  function why(root) {
    const box = root.querySelector(".written"), button = root.querySelector(".why-button");
    const heading = root.querySelector(".selected-words h2"), given = root.querySelector(".selected-words output"), marks = root.querySelector("[data-slot=why-marks]");
    /** @type {Range | null} */
    let range = null;
    /** @type {{copied: [number, number][], asked: [number, number]} | null} what the panel answers */
    let answered = null;
    /** @type {[number, number] | null} where Shift began */
    let anchor = null;

    /** @param {any} node @returns {[number, number] | null} */
    const placeOf = (node) => (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.("[data-place]")?.dataset.place.split(":").map(Number) ?? null;

    /** @param {Range | null} chosen */
    function choose(chosen) {
      range = chosen;
      mark("framed", chosen ? chosen[0] : 0, chosen ? [[chosen[1], chosen[2]]] : []);
      box.toggleAttribute("data-framed", Boolean(chosen));
      root.toggleAttribute("data-selects", Boolean(chosen && !answered)); // they stand in the card beside the text
    }

    /** What a visitor selects takes the place of an earlier answer.
     * @param {Range} chosen */
    function select(chosen) {
      const [sample, first, last] = chosen;
      answered = null;
      choose(chosen);
      const { pieces, chances } = root.written().samples[sample];
      heading.textContent = `“${pieces.slice(first, last + 1).join("").trim()}”`;
      given.textContent = percent(chances.slice(first, last + 1).reduce((/** @type {number} */ all, /** @type {number} */ one) => all * one, 1));
      if (root.panel.selection().why) root.panel.move({ why: null });
    }

    /** @param {string} name @param {number} sample @param {[number, number][]} spans */
    function mark(name, sample, spans) {
      for (const each of box.querySelectorAll(`.${name}`)) each.classList.remove(name);
      for (const [first, last] of spans) {
        for (let at = first; at <= last; at++) box.querySelector(`[data-place="${sample}:${at}"]`)?.classList.add(name);
      }
    }

    /** Tokens without what stands around their words, and with the rest of the words that they cut.
     * @param {number} sample @param {number} one @param {number} other @returns {Range} */
    function wholeWords(sample, one, other) {
      const { pieces } = root.written().samples[sample];
      const inked = (/** @type {number} */ at) => /[\p{L}\p{N}]/u.test(pieces[at]);
      const joined = (/** @type {number} */ at) => at > 0 && at < pieces.length && LETTER.test([...pieces[at]][0]) && LETTER.test([...pieces[at - 1]].at(-1) ?? "");
      let [first, last] = one < other ? [one, other] : [other, one];
      while (first < last && !inked(first)) first++;
      while (first < last && !inked(last)) last--;
      while (joined(first)) first--;
      while (joined(last + 1)) last++;
      return [sample, first, last];
    }

    // by the mouse: from the token where it was pressed to the one where it is now
    /** @type {[number, number] | null} */
    let pressed = null;
    let dragged = false;
    box.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      getSelection()?.removeAllRanges(); // pressed again, it would be dragged
      [pressed, dragged] = [event.button === 0 && event.pointerType === "mouse" ? placeOf(event.target) : null, false];
    });
    box.addEventListener("mouseover", (/** @type {MouseEvent} */ event) => {
      const to = placeOf(event.target);
      if (!pressed || !(event.buttons & 1) || !to || to[0] !== pressed[0]) return;
      dragged ||= to[1] !== pressed[1];
      if (dragged) select(wholeWords(...pressed, to[1]));
    });
    box.addEventListener("click", (/** @type {Event} */ event) => {
      if (dragged) event.stopImmediatePropagation(); // the end of a drag opens the first of its tokens
      if (!dragged) choose(null);
      dragged = false;
    }, true);
    box.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => {
      const at = placeOf(event.target);
      if (at) select(wholeWords(...at, at[1]));
    });
    box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Shift") return;
      const from = placeOf(event.target);
      if (!event.shiftKey) [anchor] = [null, range && event.key.startsWith("Arrow") && choose(null)];
      else if (event.key.startsWith("Arrow")) anchor ??= from;
    }, true);
    box.addEventListener("focusin", (/** @type {FocusEvent} */ event) => {
      const to = placeOf(event.target);
      if (anchor && to && anchor[0] === to[0]) select(wholeWords(...anchor, to[1]));
    });

    root.addEventListener("click", (/** @type {any} */ event) => {
      const asks = event.target.closest(".why-button, .why-again"), text = root.written();
      if (!asks || !text) return;
      const again = asks.matches(".why-again") && root.panel.selection().why;
      const open = placeOf(box.querySelector(".open")), chosen = range ?? (open && wholeWords(...open, open[1]));
      if (!again && !chosen) return;
      const [sample, first, last] = chosen ?? [0, 0, 0], { prompt, step } = text;
      const words = again || { prompt, tokens: text.samples[sample].ids, step, sample, first, last };
      if (range && !again) root.pick(sample, first);
      asks.dataset.with = JSON.stringify({ words });
    }, true);

    function answer() {
      const sample = root.panel.selection().why?.sample ?? 0;
      mark("copied", sample, answered?.copied ?? []);
      box.toggleAttribute("data-asked", Boolean(answered));
      if (answered) choose([sample, ...answered.asked]);
      else if (!root.hasAttribute("data-selects")) choose(null);
    }
    marks.addEventListener("shown", (/** @type {CustomEvent} */ { detail }) => {
      answered = detail;
      answer();
    });
    root.addEventListener("written", () => {
      button.hidden = !root.written()?.samples[0]?.ids.length;
      choose(null);
      answer(); // of the model chosen again, the question is still there
    });
  }

  window["playground"].whenBuilt(why, "generate");
})();
