// @ts-check
// Looks whether something of the visitor's has changed: while something goes on and the page is visible, never at rest.
// Whoever begins something calls `playground.news.look()`; panels hear `playground-news`.

(() => {
  "use strict";

  let word = ""; // what the server said last
  let timer = 0;
  let looking = false;

  /** Look now, and again as long as something goes on. */
  async function look() {
    const { known } = window["playground"];
    clearTimeout(timer);
    if (looking || !known.visitor || document.hidden) return;
    looking = true;
    let pause = 2; // seconds, where the server does not answer
    try {
      const root = window["gradio_config"]?.root ?? "";
      const answer = await fetch(`${root}/news?visitor=${encodeURIComponent(known.visitor)}`);
      if (answer.ok) {
        const said = await answer.json();
        if (said.word !== word) document.dispatchEvent(new CustomEvent("playground-news"));
        [word, pause] = [said.word, said.pause];
      }
    } catch { /* it is asked again */ }
    looking = false;
    if (pause) timer = setTimeout(look, 1000 * pause);
  }

  document.addEventListener("visibilitychange", look);
  document.addEventListener("playground", look); // the visitor is known, or another model is chosen
  window["playground"] = { ...window["playground"], news: { look } };
})();
