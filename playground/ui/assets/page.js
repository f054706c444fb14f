// What the page does by itself: keys, a mark for its style sheet, a guard of texts that nothing has learned from yet.
(() => {
  "use strict";

  // Radios are one stop of the tab key with arrows inside wherever they share a name; gradio gives each one its own.
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Tab" && !key.startsWith("Arrow")) return;
    document.querySelectorAll("fieldset").forEach((group, i) => {
      for (const radio of group.querySelectorAll("input[type=radio]")) radio.name = group.id || `radios-${i}`;
    });
  }, true);

  // What Inspect's notice says is an attribute of its tab. A rule with :has() would do, but then the browser styles every
  // element of the page anew for each letter of a figure (40 ms each, where this takes none).
  const told = { unread: ".unread", refused: ".notice-error" };
  new MutationObserver(() => {
    const tab = document.getElementById("tab-inspect"), notice = document.getElementById("inspect-notice");
    const says = notice && Object.keys(told).find((name) => notice.querySelector(told[name]));
    if (tab && tab.dataset.notice !== says) {
      if (says) tab.dataset.notice = says;
      else delete tab.dataset.notice;
    }
  }).observe(document, { childList: true, subtree: true });

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
