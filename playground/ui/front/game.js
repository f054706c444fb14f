// @ts-check
// Guess the next letter: a text that grows with every bet, one tap each. The board is drawn from its slot's content:
// {game, round, of, shown, candidates: [[id, label]], all, stakes: {sure: [right, wrong]}, over}; what comes next is not
// in it.

(() => {
  "use strict";

  /** @param {any} root the panel's form */
  function game(root) {
    const { made } = window["playground"];
    const element = root.querySelector("[data-slot=game-board]");
    const place = (name) => element.querySelector(`.bet-${name}`);
    const desk = place("desk"), text = place("text"), tokens = place("tokens"), state = place("state");
    const typed = place("typed").querySelector("input");
    let board = null, sent = false;

    const points = (n) => (n < 0 ? `−${-n}` : `+${n}`);

    function draw() {
      desk.hidden = !board || board.over;
      text.replaceChildren();
      if (!board) return;
      const before = board.shown.slice(0, -1).join("").trimStart(), last = board.shown.at(-1);
      text.append(made("span", "given", before));
      const newest = made("span", board.over ? "" : "newest", last.replaceAll("\n", "⏎\n"));
      text.append(newest, board.over ? "" : made("span", "blank", "?"));
      const at = [...tokens.children].indexOf(document.activeElement);
      tokens.replaceChildren(...board.candidates.map(([id, label], i) => {
        const node = made("button", "token bet-token", label || "∅");
        node.dataset.id = id;
        node.tabIndex = i === Math.max(at, 0) ? 0 : -1; // one stop for the tab key, arrows inside
        if (!label.replaceAll(/[␣⏎⇥]/g, "")) node.setAttribute("aria-label", label.replaceAll("␣", "space ").replaceAll("⏎", "line break ").replaceAll("⇥", "tab ").trim());
        return node;
      }));
      if (at >= 0) tokens.children[at]?.focus({ preventScroll: true });
      for (const [name, [right, wrong]] of Object.entries(board.stakes)) {
        element.querySelector(`[data-stake=${name}]`).textContent = `${points(right)} / ${points(wrong)}`;
      }
      place("typed").hidden = board.all;
      state.textContent = `Round ${board.round + 1} of ${board.of}: how sure are you? Then tap what comes next.`;
      mark();
    }

    // not disabled: the focus would be lost with every bet
    function mark() {
      for (const node of tokens.children) node.ariaDisabled = String(sent);
      tokens.title = sent ? "Your bet is being settled." : "";
    }

    /** @param {number | string} choice a token's id, or what was typed */
    async function bet(choice) {
      if (!board || board.over || sent) return;
      sent = true;
      mark();
      element.setAttribute("aria-busy", "true");
      const sure = (desk.querySelector(".bet-how :checked") ?? desk.querySelector(".bet-how [checked]")).value;
      const selection = { ...root.panel.selection(), bet: { game: board.game, round: board.round, choice, sure } };
      const answer = await window["playground"].act("bet", selection);
      element.removeAttribute("aria-busy");
      if (!answer.problem) return root.panel.move({});
      sent = false;
      mark();
      state.textContent = answer.problem;
      state.classList.add("refused");
    }

    typed.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !typed.value) return;
      event.preventDefault();
      bet(typed.value);
      typed.value = "";
    });
    tokens.addEventListener("click", ({ target }) => {
      const node = target.closest("button");
      if (!node) return;
      for (const each of tokens.children) each.tabIndex = each === node ? 0 : -1;
      bet(Number(node.dataset.id));
    });

    /** The same board drawn again, as after any news, leaves what is said of it.
     * @param {any} value */
    function accept(value) {
      if (board && value && board.game === value.game && board.round === value.round) return;
      state.classList.remove("refused");
      [board, sent] = [value, false];
      draw();
    }
    element.addEventListener("shown", ({ detail }) => accept(detail));
    for (const kind of ["change", "input"]) element.addEventListener(kind, (event) => event.stopPropagation());
  }

  window["playground"].whenBuilt(game, "generate");
})();
