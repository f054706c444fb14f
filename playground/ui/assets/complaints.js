// Bubbles. Gradio 6.31 shows what handlers outside its queue complain of to nobody: it looks for a mark that only queued
// ones bear.
(() => {
  "use strict";
  function tell(words, seconds, tone, role) {
    const shown = [...document.querySelectorAll(".toast-body, .complaint")].some((e) => e.textContent.includes(words));
    if (shown) return;
    const box = document.createElement("div");
    box.className = `complaint notice notice-${tone}`;
    box.setAttribute("role", role);
    const text = document.createElement("span");
    text.textContent = words;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close");
    close.onclick = () => box.remove();
    box.append(text, close);
    let pile = document.getElementById("complaints");
    if (!pile) {
      pile = document.createElement("div");
      pile.id = "complaints";
      (document.querySelector(".gradio-container") ?? document.body).append(pile);
    }
    pile.append(box);
    setTimeout(() => box.remove(), 1000 * seconds);
  }
  window.playgroundTell = (words) => tell(words, 8, "info", "status");

  const fetched = window.fetch.bind(window);
  window.fetch = async (resource, options) => {
    const answer = await fetched(resource, options);
    const address = String(resource?.url ?? resource);
    if (!answer.ok && address.includes("/gradio_api/run/")) {
      answer.clone().json().then(
        // a moment later, in case gradio does say it
        ({ error, visible, duration }) =>
          error && visible !== false && setTimeout(() => tell(String(error), duration ?? 10, "error", "alert"), 200),
        () => {},
      );
    }
    return answer;
  };
})();
