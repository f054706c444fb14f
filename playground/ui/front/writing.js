// @ts-check
// The Generate panel's text: POST /write answers with lines of JSON, the text grows, is then shaded by surprise, and any
// token of it opens. The browser keeps the texts (one for each model, the last one also through a reload): the server
// gets their token ids back whenever it is to explain a token or to go on.

(() => {
  "use strict";

  const DEAF = 600; // milliseconds in which a second click of a double click does not stop what the first began
  const KEY = "transformer-playground-written";
  const LONGEST = 200_000; // characters of a text that is kept through a reload

  /** @typedef {{ids: number[], pieces: string[], chances: number[]}} Sample */
  /** @typedef {{start: number, chosen: boolean, rules: Record<string, any>, precision: string}} Part one press */
  /** @typedef {{model: string, name: string, by: string, step: number, given: string, prompt: number[], unit: string,
   *   whole: number, samples: Sample[], parts: Part[], faults: [number, number, string][][], said: string, details: string, ended: string,
   *   first: string, open: [number, number] | null}} Written */
  /** @typedef {{id: number, chance: number}} Instead a token in place of the open one */

  const { made, kept } = window["playground"];
  /** @param {number} n @param {string} unit */
  const counted = (n, unit) => `${n.toLocaleString("en")} ${unit}${n === 1 ? "" : "s"}`;

  /** Read lines of JSON as they come.
   * @param {ReadableStream<any>} body @param {(line: any) => void} heard */
  async function each(body, heard) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) heard(JSON.parse(line));
    }
  }

  /** @param {any} root the panel's form */
  function writing(root) {
    const { known } = window["playground"], panel = root.panel;
    /** @param {string} name @returns {any} */
    const place = (name) => root.querySelector(`.${name}`);
    const box = place("written"), state = place("written-state"), said = place("written-said"), by = place("written-by");
    const details = place("written-details"), more = place("written-more");
    const button = place("generate-start"), prompt = root.querySelector("textarea[name=prompt]");

    /** @type {Record<string, Written>} by model, the text last shown */
    const texts = {};
    /** @type {Written | null} */
    let text = null;
    const newest = new (window["playground"].Newest)();
    let began = 0;
    let problem = ""; // why the text asked for last is not there
    /** @type {() => Sample} */
    let fresh = () => ({ ids: [], pieces: [], chances: [] }); // a sample of the text that grows, as it begins
    /** @type {Text[]} */
    let tails = []; // per sample, the text node of what no token's element shows yet

    root.written = () => text;
    root.pick = pick;

    // ---- asking ---------------------------------------------------------------------------------------------------

    /** Write: a new text, or on from a place of the one that is shown.
     * @param {{tokens: number[], kept: Sample, parts: Part[], chosen: boolean} | null} [from] */
    async function write(from = null) {
      if (prompt.value !== (panel.selection().prompt ?? "")) panel.move({ prompt: prompt.value, typed: true });
      const mine = newest.count + 1, before = text, asked = panel.selection();
      if (!asked.same_again && before?.model === asked.model && before?.parts.at(-1)?.rules.seed === asked.seed) {
        panel.move({ seed: ++asked.seed });
      }
      began = performance.now();
      if (asked.why) panel.move({ why: null });
      problem = "";
      works(true);
      state.textContent = "";
      if (innerWidth < 800) box.scrollIntoView({ behavior: "smooth", block: "nearest" });
      const after = from && before && {
        prompt: before.prompt, tokens: from.tokens, start: from.tokens.length, chosen: from.chosen, step: before.step,
      };
      await newest.do(async (/** @type {any} */ _, /** @type {AbortSignal} */ signal) => {
        try {
          const answer = await fetch((window["gradio_config"]?.root ?? "") + "/write", {
            method: "POST", headers: { "content-type": "application/json" }, signal,
            body: JSON.stringify({ visitor: known.visitor, selection: asked, after }),
          });
          if (!answer.ok || !answer.body) take(await answer.json().catch(() => ({ problem: "The server gave no answer." })));
          else await each(answer.body, (line) => signal.aborted || take(line, from));
        } catch {
          if (!signal.aborted) ({ problem } = window["playground"].SILENT);
        }
      });
      if (newest.count !== mine) return; // a newer text is shown
      works(false);
      if (text && text !== before) finish(text, from?.chosen ? [0, from.tokens.length - 1] : null);
      else if (text) ending(text);
      if (problem) {
        state.textContent = "";
        state.append(made("span", "notice notice-error", problem));
      }
    }

    /** @param {boolean} on */
    function works(on) {
      button.textContent = on ? "Stop" : "Generate";
      button.classList.toggle("primary", !on);
      button.classList.toggle("ghost", on);
      root.toggleAttribute("data-writing", on);
    }

    /** One line of an answer.
     * @param {any} line @param {{kept: Sample, parts: Part[]} | null} [from] @param {string} [first] what a text is called that nobody asked for */
    function take(line, from = null, first = "") {
      if (line.waiting) state.textContent = "Waiting for its turn …";
      if (line.problem) problem = line.problem;
      if (line.head) {
        const { kept, part, ...head } = line.head;
        fresh = () => ({ ids: [...(from?.kept.ids ?? [])], pieces: [...kept], chances: [...(from?.kept.chances ?? [])] });
        text = { ...head, samples: [fresh()], parts: [...(from?.parts ?? []), part], faults: [], said: "", details: "", ended: "", first, open: null };
        begin();
        grow(0, kept.join(""));
        return;
      }
      const it = text;
      if (!it) return;
      if (line.new) {
        line.new.forEach((/** @type {[number, string, number][]} */ tokens, /** @type {number} */ i) => {
          if (i && !it.samples[i]) grow(i, fresh().pieces.join(""));
          const sample = (it.samples[i] ??= fresh());
          for (const [id, piece, chance] of tokens) {
            sample.ids.push(id);
            sample.pieces.push(piece);
            sample.chances.push(chance);
          }
          grow(i, tokens.map(([, piece]) => piece).join(""));
        });
        if (line.state) state.textContent = line.state;
      } else if (line.end) {
        Object.assign(it, { faults: line.end.faults, said: line.end.said, details: line.end.details, ended: line.end.cut ? "length" : "stop" });
      }
    }

    /** The text is whole, or was stopped: shade it, say how it ended, open a token of it.
     * @param {Written} whole @param {[number, number] | null} open */
    function finish(whole, open) {
      texts[whole.model] = whole;
      keep(whole);
      if (whole.model !== known.model) return void recall();
      draw(whole);
      pick(...(open ?? surprising(whole)));
    }

    // ---- drawing --------------------------------------------------------------------------------------------------

    function begin() {
      box.replaceChildren();
      tails = [];
      said.textContent = "";
      details.hidden = true;
      by.textContent = text ? `${text.by}.` : "";
    }

    /** @param {number} i @param {string} more */
    function grow(i, more) {
      while (tails.length <= i) {
        if (tails.length) box.append(document.createElement("hr"));
        const tail = document.createTextNode("");
        box.append(made("span", "given", text?.given), tail, made("span", "caret"));
        tails.push(tail);
      }
      tails[i].appendData(more);
    }

    /** A whole text. Its tokens are put into the page at once: each change of a long text costs the layout of all of it.
     * @param {Written} it */
    function draw(it) {
      text = it;
      begin();
      it.samples.forEach(({ pieces, chances }, i) => {
        const nodes = pieces.map((piece, at) => token(i, at, piece, chances[at]));
        for (const [first, end, why] of it.faults[i] ?? []) {
          for (const node of nodes.slice(first, end + 1)) {
            node.classList.add("fault");
            node.title = why;
          }
        }
        grow(i, "");
        tails[i].replaceWith(...nodes);
      });
      for (const caret of box.querySelectorAll(".caret")) caret.remove();
      ending(it);
      said.textContent = it.said;
      details.hidden = false;
      more.textContent = it.details;
      outline();
      root.dispatchEvent(new Event("written"));
    }

    /** @param {number} sample @param {number} index @param {string} piece @param {number} chance */
    function token(sample, index, piece, chance) {
      const node = made("span", "");
      node.dataset.place = `${sample}:${index}`;
      node.setAttribute("role", "button");
      node.tabIndex = index ? -1 : 0; // one stop of the tab key, arrows inside
      const bits = Math.min(-Math.log2(Math.max(chance, 1e-9)), 8); // eight and more are equally strong
      node.style.setProperty("--bits", bits.toFixed(0));
      node.textContent = piece.replaceAll("\n", "⏎\n");
      if (!piece.trim()) node.setAttribute("aria-label", piece.replaceAll("\n", "line break ").replaceAll(/[^\S\n]/g, "space ").trim() || "part of a character");
      return node;
    }

    /** How the text ended, and a way to go on.
     * @param {Written} it */
    function ending(it) {
      state.textContent = "";
      if (it.first === "recorded") state.append(made("span", "badge badge-plain", it.first), " ");
      const n = it.samples[0].ids.length;
      if (it.ended === "stop") state.append(`Ended after ${counted(n, it.unit)}.`);
      else {
        state.append(`Stopped at ${counted(n, it.unit)}`);
        if (it.samples.length > 1) return;
        state.append(" · ", made("button", "link generate-continue", "Continue"));
      }
    }

    // ---- a token --------------------------------------------------------------------------------------------------

    /** The token that the model expected least, of those that the last press wrote.
     * @param {Written} it @returns {[number, number]} */
    function surprising(it) {
      const start = it.parts.at(-1)?.start ?? 0, chances = it.samples[0].chances.slice(start);
      return [0, start + chances.indexOf(Math.min(...chances))];
    }

    /** The part of the text up to a token, and the press that wrote it.
     * @param {number} sample @param {number} index */
    function upTo(sample, index) {
      const it = /** @type {Written} */ (text), part = it.parts.filter((each) => each.start <= index).at(-1) ?? it.parts[0];
      return {
        prompt: it.prompt, tokens: it.samples[sample].ids.slice(0, index + 1), start: part.start, rules: part.rules,
        precision: part.precision, step: it.step, chosen: it.parts.some((each) => each.chosen && each.start === index + 1),
      };
    }

    /** Open a token.
     * @param {number} sample @param {number} index @param {{why?: null}} closes */
    function pick(sample, index, closes = {}) {
      if (!text || newest.awaits || index < 0 || index >= text.samples[sample]?.ids.length) return;
      text.open = [sample, index];
      outline();
      panel.move({ choice: upTo(sample, index), ...closes });
    }

    function outline() {
      box.querySelector(".open")?.classList.remove("open");
      if (text?.open) box.querySelector(`[data-place="${text.open.join(":")}"]`)?.classList.add("open");
    }

    /** Go on with another token in place of the open one.
     * @param {Instead} other */
    function instead(other) {
      if (!text?.open) return;
      const [sample, index] = text.open, { ids, chances, pieces } = text.samples[sample];
      const tokens = [...ids.slice(0, index), other.id];
      const kept = { ids: tokens, pieces, chances: [...chances.slice(0, index), other.chance] };
      write({ tokens, kept, parts: text.parts.filter((each) => each.start <= index), chosen: true });
    }

    box.addEventListener("click", (/** @type {any} */ { target }) => {
      const [sample, index] = target.closest("[data-place]")?.dataset.place.split(":").map(Number) ?? [0, -1];
      pick(sample, index, { why: null });
    });
    root.addEventListener("click", (/** @type {any} */ event) => {
      const other = event.target.closest("[data-instead]");
      if (other && !newest.awaits) instead(JSON.parse(other.dataset.instead));
      if (event.target.closest(".generate-continue") && text) {
        const [{ ids, chances, pieces }] = text.samples;
        write({ tokens: ids, kept: { ids, chances, pieces }, parts: text.parts, chosen: false });
      }
      if (!event.target.closest(".generate-start")) return;
      if (!newest.awaits) return void write();
      if (performance.now() - began > DEAF) newest.drop();
    });
    prompt.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!newest.awaits) write();
    });

    // ---- what is there already ------------------------------------------------------------------------------------

    /** Whether a text continues another prompt than a lesson's, which is still in the field.
     * @param {Written} it */
    const foreign = (it) => prompt.value === panel.given() && it.given !== panel.given();
    root.addEventListener("arranged", () => {
      if (!text || panel.given() === null || text.given === panel.given()) return;
      text = null;
      begin();
      state.textContent = "";
      root.dispatchEvent(new Event("written"));
    });

    /** @param {Written} it */
    function keep(it) {
      const all = JSON.stringify(it);
      if (!it.first && all.length < LONGEST) kept(() => localStorage.setItem(KEY, all));
    }

    const stored = kept(() => JSON.parse(localStorage.getItem(KEY) ?? "null"));
    if (stored?.samples && stored.parts && stored.model) texts[stored.model] = stored;

    /** Show the text of the chosen model, if there is one. */
    function recall() {
      const it = texts[known.model];
      if (newest.awaits || !it || it === text || foreign(it)) return;
      draw(it);
      pick(...(it.open ?? surprising(it)));
    }

    box.addEventListener("shown", (/** @type {CustomEvent} */ { detail }) => {
      const own = texts[detail?.model];
      if (!detail?.lines || newest.awaits || detail.model !== known.model || (own && !own.first)) return;
      if (foreign(detail.lines[0].head)) return;
      for (const line of detail.lines) take(line, null, detail.recorded ? "recorded" : "first");
      if (text) finish(text, null);
    });
    document.addEventListener("playground", (event) => {
      if (/** @type {CustomEvent} */ (event).detail.model === undefined) return;
      newest.drop();
      setTimeout(recall); // once the panel has the model
    });
    recall();
  }

  window["playground"].whenBuilt(writing, "generate");
})();
