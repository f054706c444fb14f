// @ts-check
// What a form does in the browser: late answers leave alone what the visitor has typed meanwhile, and a text file can be
// dropped where a text can be pasted.

(() => {
  "use strict";

  /** @type {Record<string, any>} what an answer wrote last into each field */
  const written = {};
  let newest = 0;

  const plain = (/** @type {any} */ value) =>
    value === null || value === undefined || value === "" ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

  /** The values that fields take from an answer: those that nobody has changed since the question was asked.
   * @param {string} answer JSON: `n` of the question, and for each field the value that was asked with and the new one
   * @param {string[]} names @param {any[]} now what stands in these fields */
  function settle(answer, names, now) {
    const { n = 0, fields = {} } = JSON.parse(answer || "{}");
    if (n < newest) return now;
    newest = n;
    return names.map((name, i) => {
      if (!(name in fields)) return now[i];
      const [asked, told] = fields[name];
      const begun = name === "prompt" && plain(now[i]) === plain(window["playgroundBeginning"]);
      if (!begun && ![asked, written[name]].some((value) => plain(value) === plain(now[i]))) return now[i];
      if (name === "prompt") window["playgroundBeginning"] = told;
      return (written[name] = told);
    });
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
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  window["playground"] = { ...window["playground"], settle };
})();
