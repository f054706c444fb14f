// @ts-check
// Looks whether something of the visitor's has changed: while something goes on, never at rest. A hidden page only shows
// that it is still there, so that it keeps its place.
// Whoever begins something calls `playground.news.look()`; panels hear `playground-news`. Once a run is over its model is
// chosen on all tabs: at once where Train is open, else when the visitor opens it.

(() => {
  "use strict";

  let word = ""; // what the server said last
  let timer = 0;
  let going = false; // whether something goes on
  let looking = false;
  let again = false; // whether another look was asked for during this one
  let models = ""; // the same of the models alone
  /** @typedef {Record<string, [mark: string, name: string]>} Made models of runs that are over */
  /** @type {Made | null} */
  let made = null;
  let later = ""; // what was made while another tab was open, and is not chosen
  let wanted = ""; // the model that the list is to choose when it is renewed

  /** Look now, and again as long as something goes on. */
  async function look() {
    const { known } = window["playground"];
    clearTimeout(timer);
    if (looking) return void (again = true);
    if (!known.visitor || (document.hidden && !going)) return;
    looking = true;
    again = false;
    let pause = 2; // seconds, where the server does not answer
    try {
      const root = window["gradio_config"]?.root ?? "";
      const answer = await fetch(`${root}/news?visitor=${encodeURIComponent(known.visitor)}`);
      if (answer.ok) {
        const said = await answer.json();
        if (said.word !== word) document.dispatchEvent(new CustomEvent("playground-news"));
        [word, pause] = [said.word, said.pause];
        renew(said.models, said.made);
        going = Boolean(pause);
      }
    } catch { /* it is asked again */ }
    looking = false;
    if (again) return look(); // what was just begun may not be in this answer
    if (pause && !document.hidden) timer = setTimeout(look, 1000 * pause);
  }

  /** Have the list of models renewed where they have changed, and what was just trained chosen.
   * @param {string} now @param {Made} there */
  function renew(now, there) {
    const before = made, changed = before && now !== models;
    [models, made] = [now, there];
    const [id] = before ? Object.keys(there).filter((each) => before[each]?.[0] !== there[each][0]).slice(-1) : [];
    if (changed) document.dispatchEvent(new CustomEvent("playground", { detail: {} })); // a model may have other weights
    if (!id) return void (changed && press(""));
    const { address, known } = window["playground"];
    if (address.openTab() === "train" || known.model === id) return choose(id);
    later = id;
    press("");
    window["playgroundTell"](`“${there[id][1]}” has finished training.`, 8, "info", "status");
  }

  /** Choose a model on all tabs.
   * @param {string} id */
  function choose(id) {
    later = "";
    press(id);
  }

  /** @param {string} id */
  function press(id) {
    wanted = id || wanted;
    document.getElementById("renew-models")?.click();
  }

  document.addEventListener("click", (event) => {
    if (later && /** @type {HTMLElement} */ (event.target)?.closest?.("#tab-train-button")) choose(later);
  });
  document.addEventListener("playground", (event) => {
    if (/** @type {CustomEvent} */ (event).detail.model) later = ""; // the visitor has chosen another one
  });

  document.addEventListener("visibilitychange", look);
  // a hidden page's own clocks go once a minute, after which its place would be another's; a worker's go on
  const clock = new Worker(URL.createObjectURL(new Blob(["setInterval(() => postMessage(0), 20000)"])));
  clock.onmessage = () => document.hidden && going && look();
  document.addEventListener("playground", look); // the visitor is known, or another model is chosen
  window["playground"] = { ...window["playground"], news: { look, choose, wanted: () => [wanted, (wanted = "")][0] } };
})();
