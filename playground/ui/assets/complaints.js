// Bubbles. Gradio 6.31 shows what handlers outside its queue complain of to nobody: it looks for a mark that only queued
// ones bear.
(() => {
  "use strict";
  function tell(words, seconds, tone, role) {
    const shown = [...document.querySelectorAll(".complaint")].some((e) => e.textContent.includes(words));
    if (shown) return;
    const { made } = window.playground, box = made("div", `complaint notice notice-${tone}`), close = made("button", "", "×");
    box.role = role;
    close.ariaLabel = "Close";
    close.onclick = () => box.remove();
    box.append(made("span", "", words), close);
    let pile = document.getElementById("complaints");
    if (!pile) {
      pile = Object.assign(document.createElement("div"), { id: "complaints" });
      (document.querySelector(".gradio-container") ?? document.body).append(pile);
    }
    pile.append(box);
    if (seconds) setTimeout(() => box.remove(), 1000 * seconds);
    return box;
  }

  window.playgroundTell = tell;

  const fetched = window.fetch.bind(window);

  // The server is away: wait for it, and show the page anew where it was another start of it that came back.
  const server = document.querySelector("meta[name=playground-server]");
  const RESTARTED = "transformer-playground-restarted";
  let away = null;
  async function waitForServer() {
    if (away) return;
    away = tell("The server is not responding. This page waits for it to come back.", 0, "warning", "status") ?? {};
    for (;;) {
      await new Promise((done) => setTimeout(done, 1500));
      const answer = await fetched("status", { cache: "no-store" }).catch(() => null);
      if (!answer?.ok) continue;
      away.remove?.();
      away = null;
      if (answer.headers.get("x-playground-server") === server?.content) return;
      sessionStorage.setItem(RESTARTED, "yes");
      return location.reload();
    }
  }
  window.addEventListener("load", () => {
    if (!sessionStorage.getItem(RESTARTED)) return;
    sessionStorage.removeItem(RESTARTED);
    const kept = server?.dataset.lasting ? "Your models and runs are back." : "Models trained before are gone.";
    tell(`The server was restarted. ${kept}`, 20, "info", "status");
  });

  window.fetch = async (resource, options) => {
    const address = String(resource?.url ?? resource);
    if (/\/gradio_api\/upload(\?|$)/.test(address)) { // counted as this visitor's
      const headers = new Headers(options?.headers);
      headers.set("x-playground-visitor", window.playground?.known.visitor ?? "");
      options = { ...options, headers };
    }
    let answer;
    try {
      answer = await fetched(resource, options);
    } catch (problem) {
      if (/(^|\/)(gradio_api|view|do|write|news)[\/?]/.test(address) && problem?.name !== "AbortError") waitForServer();
      throw problem;
    }
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
