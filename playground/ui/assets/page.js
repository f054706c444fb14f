// A guard of texts that nothing has learned from yet.
(() => {
  "use strict";

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
