// @ts-check
// Looks whether something of the visitor's has changed: while something goes on, never at rest. A hidden page only shows
// that it is still there, so that it keeps its place.
// Whoever begins something calls `playground.news.look()`; panels hear `playground-news`.

(() => {
  "use strict";

  let word = ""; // what the server said last
  let timer = 0;
  let going = false; // whether something goes on
  let looking = false;

  /** Look now, and again as long as something goes on. */
  async function look() {
    const { known } = window["playground"];
    clearTimeout(timer);
    if (looking || !known.visitor || (document.hidden && !going)) return;
    looking = true;
    let pause = 2; // seconds, where the server does not answer
    try {
      const root = window["gradio_config"]?.root ?? "";
      const answer = await fetch(`${root}/news?visitor=${encodeURIComponent(known.visitor)}`);
      if (answer.ok) {
        const said = await answer.json();
        if (said.word !== word) document.dispatchEvent(new CustomEvent("playground-news"));
        [word, pause] = [said.word, said.pause];
        going = Boolean(pause);
      }
    } catch { /* it is asked again */ }
    looking = false;
    if (pause && !document.hidden) timer = setTimeout(look, 1000 * pause);
  }

  document.addEventListener("visibilitychange", look);
  // a hidden page's own clocks go once a minute, after which its place would be another's; a worker's go on
  const clock = new Worker(URL.createObjectURL(new Blob(["setInterval(() => postMessage(0), 20000)"])));
  clock.onmessage = () => document.hidden && going && look();
  document.addEventListener("playground", look); // the visitor is known, or another model is chosen
  window["playground"] = { ...window["playground"], news: { look } };
})();
