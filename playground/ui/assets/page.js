// What stands before gradio's own scripts: what mends them, and a guard of texts that nothing has learned from yet.
(() => {
  "use strict";

  // Gradio's sign of loading counts its tenths of a second anew at every frame, and the one of the page itself goes on
  // for ever after it has been taken away: sixty frames a second of an idle page. Ten do.
  const frame = window.requestAnimationFrame.bind(window);
  const isClock = (callback) => {
    const words = Function.prototype.toString.call(callback);
    return words.length < 160 && words.includes("performance.now()");
  };
  window.requestAnimationFrame = (callback) =>
    isClock(callback) ? setTimeout(() => frame(callback), 100) : frame(callback);

  // Gradio shows what handlers outside its queue complain of to nobody: it looks for a mark that only queued ones bear.
  function complain(words, seconds) {
    const shown = [...document.querySelectorAll(".toast-body, .complaint")].some((e) => e.textContent.includes(words));
    if (shown) return;
    const box = document.createElement("div");
    box.className = "complaint notice notice-error";
    box.setAttribute("role", "alert");
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

  const fetched = window.fetch.bind(window);
  window.fetch = async (resource, options) => {
    const answer = await fetched(resource, options);
    const address = String(resource?.url ?? resource);
    if (!answer.ok && address.includes("/gradio_api/run/")) {
      answer.clone().json().then(
        // a moment later, in case gradio does say it
        ({ error, visible, duration }) =>
          error && visible !== false && setTimeout(() => complain(String(error), duration ?? 10), 200),
        () => {},
      );
    }
    return answer;
  };

  // Radios are one stop of the tab key with arrows inside wherever they share a name; gradio gives each one its own.
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Tab" && !key.startsWith("Arrow")) return;
    document.querySelectorAll("fieldset").forEach((group, i) => {
      for (const radio of group.querySelectorAll("input[type=radio]")) radio.name = group.id || `radios-${i}`;
    });
  }, true);

  // A pasted text that no run has taken yet would be gone with the page: the browser asks first.
  const drafts = { text: "train-button", "moe-text": "moe-train" };
  const unsaved = new Set();
  document.addEventListener("input", ({ target }) => {
    const place = target.tagName === "TEXTAREA" ? target.closest("#text, #moe-text")?.id : null;
    if (place) unsaved[target.value.trim().length > 200 ? "add" : "delete"](place);
  });
  document.addEventListener("click", ({ target }) => {
    const pressed = target.closest?.("button")?.id;
    for (const [place, button] of Object.entries(drafts)) if (button === pressed) unsaved.delete(place);
  });
  window.addEventListener("beforeunload", (event) => {
    if (unsaved.size) event.preventDefault();
  });
})();
