// @ts-check
// Opens the class panel (ui/classroom) and keeps its place: the code is in the address, the teacher's secret behind the
// address's # and then in this tab's memory alone. A page without a class asks nothing.

(() => {
  "use strict";

  const JOINED = "playground-class"; // in localStorage: this browser has joined one
  const secretOf = (/** @type {string} */ code) => `playground-teaches ${code}`; // in sessionStorage

  const { kept, whenBuilt } = window["playground"];
  whenBuilt(begin, "class");

  /** @param {HTMLFormElement & {panel: any}} root */
  function begin(root) {
    const code = new URLSearchParams(location.search).get("class") ?? "";
    const secret = location.hash.match(/^#teach=([\w-]+)$/)?.[1] ?? kept(() => sessionStorage.getItem(secretOf(code))) ?? "";
    if (code || kept(() => localStorage.getItem(JOINED)) === "joined") open(root, { code, secret });

    root.querySelector("[data-slot=place]")?.addEventListener("shown", (event) => {
      const place = /** @type {CustomEvent} */ (event).detail, words = new URLSearchParams(location.search);
      if (place.code) words.set("class", place.code);
      else words.delete("class");
      history.replaceState(null, "", `${location.pathname}${words.size ? `?${words}` : ""}`);
      kept(() => {
        if (place.secret) sessionStorage.setItem(secretOf(place.code), place.secret);
        else if (place.joined) localStorage.setItem(JOINED, "joined");
        else if (!place.code) localStorage.removeItem(JOINED);
      });
      window["playground"].news.look(); // from now on there is something to hear
    });
    root.addEventListener("done", (event) => {
      const { lesson } = /** @type {CustomEvent} */ (event).detail;
      if (lesson) openLesson(lesson);
    });
    root.addEventListener("click", (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest(".class-close")) delete root.dataset.open;
      const link = /** @type {HTMLElement | null} */ (target.closest("[data-class-link]"));
      if (link) copy(link, root.panel.selection());
      const lesson = /** @type {HTMLElement | null} */ (target.closest("[data-open-lesson]"));
      if (!lesson) return;
      event.preventDefault();
      openLesson(lesson.dataset.openLesson ?? "");
    });
    document.addEventListener("click", (event) => {
      if (!/** @type {HTMLElement} */ (event.target)?.closest?.(".class-button")) return;
      open(root, { note: "" });
      root.scrollIntoView({ block: "center" });
    });
    window.addEventListener("hashchange", () => location.hash.startsWith("#teach=") && location.reload());
  }

  /** @param {HTMLFormElement & {panel: any}} root @param {object} move */
  function open(root, move) {
    root.dataset.open = "";
    root.panel.move(move);
  }

  /** @param {string} id */
  function openLesson(id) {
    /** @type {HTMLElement | null} */ (document.querySelector(`#learn-menu [data-lesson="${CSS.escape(id)}"]`))?.click();
  }

  /** @param {HTMLElement} button @param {{code: string, secret: string}} selection */
  function copy(button, { code, secret }) {
    const teaches = button.dataset.classLink === "teacher" ? `#teach=${secret}` : "";
    window["playground"].address.copy(`${location.origin}${location.pathname}?class=${code}${teaches}`, button);
  }
})();
