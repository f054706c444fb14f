// @ts-check
// What all scripts of the page share: who the visitor is and which model is chosen (`known`), and one way to ask the server
// (`ask`). Then what the page does by itself: keys, a mark for its style sheet, a guard of texts that no run has taken yet.

(() => {
  "use strict";

  /** @typedef {{visitor: string, model: string}} Known */

  const SILENT = { problem: "The server is not responding. Try again in a moment." };
  /** @type {Known} */
  const known = { visitor: "", model: "" };

  /** Tell the page's scripts what has changed; panels that are in sight ask again.
   * @param {Partial<Known>} news */
  function tell(news) {
    const changed = Object.entries(news).filter(([name, value]) => known[name] !== (value ?? ""));
    for (const [name, value] of changed) known[name] = value ?? "";
    if (changed.length) document.dispatchEvent(new CustomEvent("playground", { detail: Object.fromEntries(changed) }));
  }

  /** Ask one of the server's routes. Rejects with an AbortError when `signal` says so, and with a TypeError when nobody
   * answers; a refusal is an answer with a `problem`.
   * @param {string} path @param {object} body @param {AbortSignal} [signal] @returns {Promise<any>} */
  async function ask(path, body, signal) {
    const root = window["gradio_config"]?.root ?? "";
    const answer = await fetch(root + path, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal,
    });
    const said = await answer.json().catch(() => ({}));
    return answer.ok ? said : { problem: said.problem ?? said.detail ?? said.error ?? "The server gave no answer." };
  }

  /** Have the server do something. If it does not respond, the answer has a `problem`.
   * @param {string} name @param {object} selection @returns {Promise<any>} */
  const act = (name, selection) => ask(`/do/${name}`, { visitor: known.visitor, selection }).catch(() => SILENT);

  /** An element with a class and a text.
   * @param {string} tag @param {string} name @param {string} [text] */
  function made(tag, name, text = "") {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text) node.textContent = text;
    if (node instanceof HTMLButtonElement) node.type = "button";
    return node;
  }

  /** Have the browser save what lies at an address, or is given.
   * @param {string | Blob} content @param {string} called */
  function save(content, called) {
    const href = typeof content === "string" ? content : URL.createObjectURL(content);
    const link = Object.assign(document.createElement("a"), { href, download: called });
    document.body.append(link);
    link.click();
    link.remove();
    if (href !== content) setTimeout(() => URL.revokeObjectURL(href), 10_000);
  }

  /** What a browser's storage gives, or nothing if it is blocked or full.
   * @template T @param {() => T} use @returns {T | null} */
  function kept(use) {
    try {
      return use();
    } catch {
      return null;
    }
  }

  /** Begin with the form of a panel once it is built.
   * @param {(root: any) => void} begin @param {string} [name] the only panel that counts */
  function whenBuilt(begin, name) {
    document.addEventListener("playground-panel", (event) => {
      const root = /** @type {CustomEvent} */ (event).detail;
      if (!name || root.dataset.panel === name) begin(root);
    });
  }

  // ---- keys --------------------------------------------------------------------------------------------------------

  // Radios are one stop of the tab key with arrows inside wherever they share a name; gradio gives each one its own.
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Tab" && !key.startsWith("Arrow")) return;
    document.querySelectorAll("fieldset").forEach((group, i) => {
      for (const radio of group.querySelectorAll("input[type=radio]")) radio.setAttribute("name", group.id || `radios-${i}`);
    });
  }, true);

  // A list that the tab key leaves closes; gradio's stays open over the page, with one choice in it.
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (key !== "Tab" || !(target instanceof Element && target.matches("input[role=combobox]"))) return;
    event.stopPropagation();
    target.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  }, true);

  // ---- what is open ------------------------------------------------------------------------------------------------

  // Style sheets ask the body: `data-shows` names what of this there is. Rules with :has() would do, but then the browser
  // styles every element of the page anew for each letter of a figure (40 ms each, where this takes none).
  const SHOWS = {
    lesson: "#lessons .lesson header", board: "#class .class-head",
    running: "#stop-button", form: "#train-button", "pair-form": "#moe-train", unpaired: "#moe-panel .before-first",
    pair: "#tab-moe-button[aria-selected=true]",
  };
  new MutationObserver(() => {
    const names = Object.entries(SHOWS).filter(([, place]) => document.querySelector(place)).map(([name]) => name).join(" ");
    if (document.body && document.body.dataset.shows !== names) document.body.dataset.shows = names;
    const model = /** @type {HTMLInputElement | null} */ (document.querySelector("#model input"));
    const cut = model && /[\u0590-\u08ff]/.test(model.value) && model.scrollWidth > model.clientWidth;
    const dir = cut ? "rtl" : "ltr"; // a name in Arabic is cut at its own end
    if (model && model.dir !== dir) model.dir = dir;
  }).observe(document, { childList: true, subtree: true, attributeFilter: ["aria-selected"] });

  // ---- a pasted text that no run has taken yet would be gone with the page: the browser asks first -----------------

  let unsaved = false;
  document.addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement && target.closest("#text, #moe-text")) unsaved = target.value.trim().length > 200;
  });
  document.addEventListener("click", ({ target }) => {
    if (/** @type {Element} */ (target).closest?.("#train-button, #moe-train")) unsaved = false;
  });
  window.addEventListener("beforeunload", (event) => unsaved && event.preventDefault());

  window["playground"] = { ...window["playground"], known, tell, ask, act, made, save, kept, whenBuilt, SILENT };
})();
