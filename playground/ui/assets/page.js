// A guard of texts that nothing has learned from yet.
(() => {
  "use strict";

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
