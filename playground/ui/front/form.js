// @ts-check
// The browser's half of ui/forms/followed.py, a form of Gradio's fields. Whenever one is touched, it asks the server what
// the form holds now, and names everything that was touched since the last answer. Only the newest question counts
// (newest.js). What was typed in the meantime stays. A text file can be dropped where a text can be pasted.

(() => {
  "use strict";

  const TYPING = 120; // milliseconds without a key before the server is asked
  const TEXT = "text"; // the field that may hold a whole book; sent only where it is needed
  const SAME = { __type__: "update" }; // leaves a component as it is

  /** @typedef {{name: string, reads: string[], sets: string[]}} Form
   * What a form is called, and the names of the components that it reads and sets. */
  /** @typedef {{fields?: Record<string, any>, shows?: Record<string, any>, begun?: string, problem?: string}} Answer */

  /** What is under way in a form. */
  class Following {
    /** @type {Set<string>} what was touched since the last answer */
    causes = new Set();
    /** @type {Record<string, any>} what the fields held when the first of these was touched */
    first = {};
    /** @type {Record<string, any>} what answers have put into fields since Train was pressed */
    told = {};
    wholeTexts = false;
    newest = new (window["playground"].Newest)();
    pressed = false;
    quiet = 0; // until then, a text that changes was put there by a lesson, which sets what else there is
    /** @type {Promise<any>} */
    answered = Promise.resolve();

    /** What was asked before counts no more. */
    forget() {
      this.newest.drop();
      this.newest.count++;
      this.causes.clear();
    }
  }

  /** @type {Record<string, Following>} */
  const forms = {};
  const wait = (/** @type {number} */ time) => new Promise((done) => setTimeout(done, time));
  const plain = (/** @type {any} */ value) =>
    value === null || value === undefined || value === "" ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

  /** @param {Form} form @param {Record<string, any>} values */
  const updates = (form, values) => form.sets.map((name) => (name in values ? values[name] : SAME));

  /** @param {Form} form @param {any[]} list @returns {Record<string, any>} */
  const named = (form, list) => Object.fromEntries(form.reads.map((name, i) => [name, list[i]]));

  async function visitor() {
    const { known } = window["playground"];
    while (!known.visitor) await wait(50); // while the page opens
    return known.visitor;
  }

  /** Something was touched: returns what the form's components hold from now on.
   * @param {Form} form @param {string} cause @param {boolean | string} wholeTexts whether texts are looked at, or the
   * field that says so @param {any[]} list */
  async function touched(form, cause, wholeTexts, list) {
    const at = (forms[form.name] ??= new Following()), now = named(form, list);
    if (cause === TEXT && performance.now() < at.quiet) return updates(form, {});
    if (!at.causes.size) at.first = now;
    at.causes.add(cause);
    at.wholeTexts ||= typeof wholeTexts === "string" ? now[wholeTexts] : wholeTexts;
    const followed = at.newest.do((/** @type {any} */ ask) => follow(form, at, now, ask), TYPING);
    const answer = followed.then((/** @type {Record<string, any> | undefined} */ shows) => updates(form, shows ?? {}));
    at.answered = answer.catch(() => {});
    return answer;
  }

  /** What is shown from now on, by name.
   * @param {Form} form @param {Following} at @param {Record<string, any>} now @param {any} ask */
  async function follow(form, at, now, ask) {
    const asked = at.wholeTexts ? now : { ...now, [TEXT]: undefined }, its = await visitor();
    let values = asked, causes = [...at.causes], fields = {}, shows = {};
    for (;;) {
      /** @type {Answer} */
      const answer = await ask(`/do/${form.name}`, () => ({ visitor: its, selection: { values, causes } }));
      if (answer.problem) break; // nothing that a page sends; the form stays as it is
      const told = Object.entries(answer.fields ?? {}), typed = told.filter(([name]) => isTyped(at, now, name));
      fields = { ...fields, ...Object.fromEntries(told.filter((each) => !typed.includes(each))) };
      shows = { ...shows, ...answer.shows };
      if (!typed.length || !causes.length) break;
      [values, causes] = [{ ...asked, ...fields }, []]; // asked again, so that the words describe what was typed
    }
    at.causes.clear();
    at.wholeTexts = false;
    Object.assign(at.told, fields);
    for (const [name, value] of Object.entries(fields)) { // a field's choices may change besides what is chosen
      shows[name] = shows[name]?.__type__ ? { ...shows[name], value } : value;
    }
    return shows;
  }

  /** Whether a visitor has changed this field since the first question.
   * @param {Following} at @param {Record<string, any>} now @param {string} name */
  const isTyped = (at, now, name) => plain(now[name]) !== plain(at.first[name]);

  /** The form's button was pressed: begin what it describes, once it has followed what was touched last.
   * @param {Form} form @param {string} panel where to see what was begun @param {any[]} list */
  async function pressed(form, panel, list) {
    const at = (forms[form.name] ??= new Following());
    if (at.pressed) return updates(form, {});
    [at.pressed, at.told] = [true, {}];
    try {
      for (let last; last !== at.answered; ) await (last = at.answered);
      const { count } = at.newest, values = { ...named(form, list), ...at.told };
      await visitor();
      /** @type {Answer} */
      const answer = await window["playground"].act(form.name, { values, pressed: true });
      if (answer.problem) window["playgroundTell"](answer.problem, 12, "error", "alert");
      if (answer.begun) {
        window["playground"].news.look();
        if (innerWidth < 900) document.querySelector(panel)?.scrollIntoView({ behavior: "smooth" });
      }
      return updates(form, at.newest.count === count ? answer.shows ?? {} : {});
    } finally {
      at.pressed = false;
    }
  }

  /** A panel fills the form: what it says counts from now on, whatever was asked before.
   * @param {Form} form */
  function filled(form) {
    const at = (forms[form.name] ??= new Following()), given = window["playground"].form.filling ?? {};
    at.forget();
    return updates(form, given);
  }

  /** A lesson sets the form: its text comes a moment before the rest, and nobody is to follow it.
   * @param {string} name */
  function settled(name) {
    const at = (forms[name] ??= new Following());
    at.forget();
    at.quiet = performance.now() + 1500;
  }

  for (const kind of ["dragover", "drop"]) {
    document.addEventListener(kind, (event) => {
      const { target, dataTransfer } = /** @type {DragEvent} */ (event);
      const own = /** @type {HTMLElement} */ (target)?.closest?.(".text-own");
      const file = dataTransfer?.types.includes("Files") && dataTransfer;
      if (!own || !file || !(/** @type {HTMLElement} */ (target).closest("textarea"))) return;
      event.preventDefault();
      if (kind === "drop" && file.files.length) upload(own, file.files[0]);
    });
  }

  /** Let the field for files take this one, once it is there.
   * @param {Element} own @param {File} file */
  async function upload(own, file) {
    /** @type {HTMLElement | null} */ (own.querySelector(".seg-radio input[value=upload]"))?.click();
    for (let tries = 0; tries < 40; tries++) {
      const field = /** @type {HTMLInputElement | null} */ (own.querySelector("input[type=file]"));
      if (field) {
        const carrier = new DataTransfer();
        carrier.items.add(file);
        field.files = carrier.files;
        return void field.dispatchEvent(new Event("change", { bubbles: true }));
      }
      await wait(100);
    }
  }

  window["playground"] = { ...window["playground"], form: { touched, pressed, filled, settled } };
})();
