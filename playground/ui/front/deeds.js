// @ts-check
// What a panel's buttons do besides changing the selection. One with `data-do="name"` does something on the server:
// `data-with` are fields besides the selection, `data-sure` a question that is asked first, `data-waits` what it says
// meanwhile. In a <fieldset> it takes along what the fields with `data-field` hold, which are in no selection. The answer
// may hold `move` (a change of the selection), `shows` (slot → content), `choose` (a model), `save` (a file's address), `tab`
// (one to open), `fills` (the fields of a form, see form.js); whoever listens to the event `done` has all of it.
// `data-upload="name"` is a field for a file: the server stores it, and the deed of that name gets where it lies. One with
// `data-choose` chooses a model on all tabs, one with `data-unfold` opens a folded part by its id, one with `data-open-tab`
// another tab, and `data-copy-link` copies the link to what is shown.

(() => {
  "use strict";

  /** Nothing is kept of this visitor any more: the page begins as somebody else's. */
  function anew() {
    const ours = Object.keys(localStorage).filter((key) => key.startsWith("transformer-playground"));
    for (const key of ours) localStorage.removeItem(key);
    location.assign(location.pathname);
  }

  /** @param {string} id */
  function unfold(id) {
    const fold = document.getElementById(id);
    if (fold instanceof HTMLDetailsElement) fold.open = true;
    fold?.scrollIntoView({ behavior: "smooth" });
  }

  /** @param {string} name */
  function openTab(name) {
    document.getElementById(`tab-${name}-button`)?.click();
    scrollTo({ top: 0 });
  }

  /** @param {any} root a panel's form */
  function deeds(root) {
    const { save, address, news, SILENT } = window["playground"], { panel } = root;

    /** Do something on the server, then show what came of it.
     * @param {string} name @param {object} more fields besides the selection */
    async function act(name, more) {
      const answer = await window["playground"].act(name, { ...panel.selection(), ...more });
      if (answer.problem) return panel.take({ problem: answer.problem });
      if (answer.anew) return anew();
      for (const [slot, content] of Object.entries(answer.shows ?? {})) panel.show(slot, content);
      if (answer.save) save(answer.save, decodeURIComponent(answer.save.split("/").pop()));
      if (answer.choose) news.choose(answer.choose);
      else news.look();
      panel.move(answer.move ?? {});
      if (answer.tab) openTab(answer.tab);
      if (answer.fills) {
        window["playground"].form.filling = answer.fills;
        panel.trigger("select");
      }
      root.dispatchEvent(new CustomEvent("done", { detail: answer }));
    }

    /** The contents of the fields beside a button, except hidden ones.
     * @param {HTMLElement} button */
    const fieldsBeside = (button) => {
      const all = /** @type {HTMLInputElement[]} */ ([...(button.closest("fieldset")?.querySelectorAll("[data-field]") ?? [])]);
      return Object.fromEntries(all.filter((field) => !field.closest("[hidden]")).map((field) => [field.dataset.field,
        field.type === "checkbox" ? field.checked : field.type === "number" && field.value !== "" ? Number(field.value) : field.value]));
    };

    /** @param {HTMLButtonElement} button */
    async function press(button) {
      const { sure, waits, with: fields } = button.dataset, words = button.textContent;
      if (sure && !window.confirm(sure)) return;
      button.disabled = true;
      if (waits) button.textContent = waits;
      await act(button.dataset.do ?? "", { ...fieldsBeside(button), ...JSON.parse(fields ?? "{}") });
      if (waits) button.textContent = words;
      button.disabled = false;
    }

    /** @param {HTMLInputElement} field */
    async function upload(field) {
      const body = new FormData(), [file] = field.files ?? [];
      if (!file) return;
      body.append("files", file);
      field.disabled = true;
      const answer = await fetch(`${window["gradio_config"]?.root ?? ""}/gradio_api/upload`, { method: "POST", body }).catch(() => null);
      const said = await answer?.text();
      if (answer?.ok) await act(field.dataset.upload ?? "", { file: { path: JSON.parse(said ?? "")[0] } });
      else panel.take(answer ? { problem: said } : SILENT);
      [field.value, field.disabled] = ["", false];
    }

    root.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const pressed = (/** @type {string} */ what) => /** @type {HTMLButtonElement | null} */ (/** @type {HTMLElement} */ (event.target).closest(`[data-${what}]`));
      const deed = pressed("do"), choose = pressed("choose"), fold = pressed("unfold"), tab = pressed("open-tab");
      const copied = pressed("copy-link");
      if (deed) press(deed);
      else if (choose) news.choose(choose.dataset.choose);
      else if (fold) unfold(fold.dataset.unfold ?? "");
      else if (tab) openTab(tab.dataset.openTab ?? "");
      else if (copied) {
        address.copy(address.link(root.dataset.tab ?? root.dataset.panel), copied);
        root.querySelector("[data-slot=carried]")?.classList.add("copied-link"); // what it carries is said with it
      }
    });
    root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const field = /** @type {HTMLElement} */ (event.target);
      if (event.key !== "Enter" || field.tagName !== "INPUT" || !field.dataset.field) return;
      /** @type {HTMLElement | null | undefined} */ (field.closest(".line, fieldset")?.querySelector("[data-do]"))?.click();
    });
    root.addEventListener("change", (/** @type {Event} */ event) => {
      const field = /** @type {HTMLInputElement} */ (event.target);
      if (field.dataset.upload) upload(field);
    });
  }

  window["playground"].whenBuilt(deeds);
})();
