// @ts-check
// What all scripts of the page share: who the visitor is and which model is chosen (`known`), one way to ask the server
// (`ask`), and the page's address (`address`), which always leads back to what is shown.

(() => {
  "use strict";

  /** @typedef {{visitor: string, model: string, weights: string}} Known */

  /** @type {Known} */
  const known = { visitor: "", model: "", weights: "" };

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

  // ---- the address ----------------------------------------------------------------------------------------------

  const KEPT = ["__theme", "lesson", "class"];
  const openTab = () =>
    document.querySelector("#tabs [role=tab][aria-selected=true][id^=tab-]")?.id.slice("tab-".length, -"-button".length);

  /** The words of a link to what a tab shows.
   * @param {string} tab @returns {URLSearchParams} */
  function words(tab) {
    const made = new URLSearchParams({ tab });
    for (const [name, value] of Object.entries(shown[tab]?.() ?? {})) if (value !== "" && value !== undefined) made.set(name, String(value));
    return made;
  }

  /** @type {Record<string, () => Record<string, string | number>>} what each tab shows: its model and the rest */
  const shown = {};

  /** Put what an open tab shows into the address.
   * @param {string} tab @param {boolean} [visited] whether Back should lead to what stood there before */
  function write(tab, visited = false) {
    if (openTab() !== tab) return;
    const old = new URLSearchParams(location.search), made = words(tab);
    for (const name of KEPT) if (old.has(name)) made.set(name, old.get(name) ?? "");
    if (String(made) === String(old)) return;
    history[visited ? "pushState" : "replaceState"](null, "", `${location.pathname}?${made}`);
  }

  /** @param {string} tab @returns {string} */
  const link = (tab) => `${location.origin}${location.pathname}?${words(tab)}`;

  document.addEventListener("click", (event) => {
    const tab = /** @type {HTMLElement} */ (event.target)?.closest?.("#tabs > .tab-wrapper [role=tab][id^=tab-]");
    if (tab && event.isTrusted) setTimeout(() => write(tab.id.slice("tab-".length, -"-button".length), true));
  });
  window.addEventListener("popstate", () => {
    const tab = new URLSearchParams(location.search).get("tab");
    const button = tab && /^[a-z]+$/.test(tab) && document.getElementById(`tab-${tab}-button`);
    if (button && openTab() !== tab) button.click();
  });

  window["playground"] = { ...window["playground"], known, tell, ask, address: { write, link, shown, openTab } };
})();
