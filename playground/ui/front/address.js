// @ts-check
// The page's address, which always leads back to what is shown: each panel says here what of its selection is in it
// (`data-address`), while its tab is open. In it, `cell` stands for query and key. `typed=0` says that the prompt is the
// model's own, so that another model brings another one.

(() => {
  "use strict";

  const KEPT = ["__theme", "lesson", "class"];

  /** @type {Record<string, (copied: boolean) => Record<string, string | number>>} what each tab shows: its model and the rest */
  const shown = {};

  const openTab = () =>
    document.querySelector("#tabs [role=tab][aria-selected=true][id^=tab-]")?.id.slice("tab-".length, -"-button".length);

  /** The words of a link to what a tab shows.
   * @param {string} tab @param {boolean} [copied] whether it is for others, too @returns {URLSearchParams} */
  function words(tab, copied = false) {
    const made = new URLSearchParams({ tab });
    for (const [name, value] of Object.entries(shown[tab]?.(copied) ?? {})) if (value !== "" && value !== undefined) made.set(name, String(value));
    return made;
  }

  /** Put what an open tab shows into the address.
   * @param {string} tab @param {boolean} [visited] whether Back should lead to what stood there before */
  function write(tab, visited = false) {
    if (openTab() === tab) put(words(tab), visited);
  }

  /** Open a tab, and one of its views.
   * @param {string} tab @param {string} [view] */
  function open(tab, view) {
    const made = words(tab);
    if (view) made.set("view", view);
    put(made, true);
    dispatchEvent(new PopStateEvent("popstate"));
  }

  /** @param {URLSearchParams} made @param {boolean} visited */
  function put(made, visited) {
    const old = new URLSearchParams(location.search);
    for (const name of KEPT) if (old.has(name)) made.set(name, old.get(name) ?? "");
    if (String(made) === String(old)) return;
    history[visited ? "pushState" : "replaceState"](null, "", `${location.pathname}?${made}`);
  }

  /** The link to what a tab shows.
   * @param {string} tab */
  const link = (tab) => `${location.origin}${location.pathname}?${words(tab, true)}`;

  /** Copy a link; the button says so.
   * @param {string} copied @param {HTMLElement} button */
  async function copy(copied, button) {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(copied);
      button.textContent = "Link copied";
      setTimeout(() => (button.textContent = said), 2500);
    } catch {
      window.prompt("Copy this link:", copied);
    }
  }

  /** A panel's part of the address: `read` what it selects, and `says` what it is to say of a selection.
   * @param {HTMLElement} root @param {string} tab @param {Record<string, any>} start the selection that it opens with */
  function part(root, tab, start) {
    const fields = (root.dataset.address ?? "").split(" ").filter(Boolean);

    /** @returns {Record<string, any>} */
    function read() {
      const said = new URLSearchParams(location.search), found = {};
      if (said.get("tab") !== tab) return found;
      for (const each of fields) {
        const text = said.get(each);
        if (text === null) continue;
        if (each === "cell") [found.query, found.key] = text.split(",").map(Number);
        else if (typeof start[each] === "object" && start[each]) {
          try {
            found[each] = JSON.parse(text);
          } catch { /* somebody's own spelling; the panel opens as usual */ }
        } else if (each === "prompt") Object.assign(found, { prompt: text, typed: true });
        else found[each] = /^\d{1,6}(\.\d+)?$/.test(text) && typeof start[each] !== "string" ? Number(text) : text;
      }
      return found;
    }

    /** @param {Record<string, any>} selection @returns {Record<string, string | number>} */
    const says = (selection) => Object.fromEntries(fields.flatMap((each) => {
      if (each === "typed") return (selection.prompt ?? "") === "" || selection.typed ? [] : [[each, 0]];
      const value = each === "cell" ? [selection.query, selection.key].join(",") : selection[each];
      const usual = JSON.stringify(value) === JSON.stringify(start[each]) && each !== "view";
      if (value === undefined || value === null || usual) return [];
      return [[each, typeof value === "object" ? JSON.stringify(value) : value]];
    }));

    return { read, says };
  }

  document.addEventListener("click", (event) => {
    const tab = /** @type {HTMLElement} */ (event.target)?.closest?.("#tabs > .tab-wrapper [role=tab][id^=tab-]");
    if (tab && event.isTrusted) setTimeout(() => write(tab.id.slice("tab-".length, -"-button".length), true));
  });
  window.addEventListener("popstate", () => {
    const tab = new URLSearchParams(location.search).get("tab");
    const button = tab && /^[a-z]+$/.test(tab) && document.getElementById(`tab-${tab}-button`);
    if (button && openTab() !== tab) button.click();
  });

  window["playground"] = { ...window["playground"], address: { write, open, link, copy, shown, openTab, part } };
})();
