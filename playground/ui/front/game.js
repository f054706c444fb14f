// @ts-check
// Guess the next letter: a text that grows by one token with every bet. The board is drawn from its slot's content:
// {game, round, of, shown, candidates: [[id, label]], all, trust, most, over}; what comes next is not in it.

(() => {
  "use strict";

  /** @param {any} root the panel's form */
  function game(root) {
    const element = root.querySelector("[data-slot=game-board]");
    const place = (name) => element.querySelector(`.bet-${name}`);
    const desk = place("desk"), text = place("text"), tokens = place("tokens"), stakes = place("stakes");
    const typed = place("typed").querySelector("input"), button = place("button"), state = place("state");
    const STEP = 10;
    let board = null, chips = new Map(), choice = null, labels = new Map(), sent = false;

    const made = (tag, name, words) => {
      const node = document.createElement(tag);
      if (name) node.className = name;
      if (words !== undefined) node.textContent = words;
      return node;
    };
    const visible = (words) => words.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥");
    const spreading = () => desk.querySelector("input[value=chips]").checked;
    const placed = () => [...chips.values()].reduce((sum, n) => sum + n, 0);
    const named = (key) => labels.get(key) ?? visible(String(key));

    function draw() {
      desk.hidden = !board || board.over;
      text.replaceChildren();
      if (!board) return;
      const before = board.shown.slice(0, -1).join("").trimStart(), last = board.shown.at(-1);
      text.append(made("span", "given", before));
      const newest = made("span", "newest");
      last.split("\n").forEach((line, i) => {
        if (i) newest.append(made("span", "break", "⏎"), "\n");
        if (line) newest.append(line);
      });
      text.append(newest, made("span", "blank", board.over ? "" : "?"));
      labels = new Map(board.candidates);
      const at = [...tokens.children].indexOf(document.activeElement);
      tokens.replaceChildren(...board.candidates.map(([id, label], i) => {
        const node = made("button", "bet-token", label || "∅");
        node.type = "button";
        node.dataset.id = id;
        node.tabIndex = i === Math.max(at, 0) ? 0 : -1; // one stop for the tab key, arrows inside
        if (!label.replaceAll(/[␣⏎⇥]/g, "")) node.setAttribute("aria-label", label.replaceAll("␣", "space ").replaceAll("⏎", "line break ").replaceAll("⇥", "tab ").trim());
        return node;
      }));
      if (at >= 0) tokens.children[at]?.focus({ preventScroll: true });
      place("listed").textContent = board.all ? "" : "By counting in the training text, these are the likeliest after the last token, in the order of the alphabet. Any other can be typed; a space before it counts.";
      mark();
    }

    function mark() {
      const many = spreading();
      tokens.querySelectorAll("button").forEach((node) => {
        const id = Number(node.dataset.id), on = many ? chips.get(id) ?? 0 : choice === id;
        node.setAttribute("aria-pressed", Boolean(on));
        node.dataset.chips = many && on ? on : "";
      });
      stakes.replaceChildren(...(many ? [...chips].map(([key, n]) => {
        const row = made("label", "bet-stake", named(key) + " "), box = made("input");
        Object.assign(box, { type: "number", min: 0, max: board.most, value: n, inputMode: "numeric" });
        box.addEventListener("change", () => { put(key, Number(box.value)); });
        row.append(box);
        return row;
      }) : []));
      const sure = Math.round(100 * board.trust);
      state.textContent = many
        ? `${placed()} of ${board.most} chips placed; the rest lies evenly on all tokens.`
        : choice === null ? `Bet ${board.round + 1} of ${board.of}. Choose a token: it will count for ${sure} %, ${board.round ? "as often as your choices have come true so far, counting one more that was half right" : "and later for as much as your choices have come true"}.` : `“${named(choice)}” for ${sure} %.`;
      button.ariaDisabled = sent || (!many && choice === null && !typed.value); // not disabled: it would lose the focus with every bet
    }

    function put(key, n) {
      n = Math.max(0, Math.min(Math.floor(n) || 0, board.most - placed() + (chips.get(key) ?? 0)));
      n ? chips.set(key, n) : chips.delete(key);
      mark();
    }

    function take(key) {
      if (!spreading()) choice = key;
      else return put(key, (chips.get(key) ?? 0) + STEP);
      mark();
    }

    // what is typed stands for a listed token where there is one, else for itself: the server knows them all
    const keyOf = (words) => board.candidates.find(([, label]) => label === visible(words))?.[0] ?? words;

    function go() {
      if (!board || board.over || sent) return;
      if (typed.value) { take(keyOf(typed.value)); typed.value = ""; if (spreading()) return; }
      if (!spreading() && choice === null) return;
      settle(spreading() ? { chips: [...chips] } : { choice });
    }

    async function settle(bet) {
      const { known, ask } = window["playground"];
      sent = true; // until the next bet is there: what is chosen meanwhile is for that one
      [chips, choice] = [new Map(), null];
      mark();
      element.setAttribute("aria-busy", "true");
      const selection = { ...root.panel.selection(), bet: { game: board.game, round: board.round, ...bet } };
      const answer = await ask("/do/bet", { visitor: known.visitor, selection }).catch(() => ({ problem: "The server does not answer. Bet again in a moment." }));
      element.removeAttribute("aria-busy");
      if (!answer.problem) return root.panel.move({});
      sent = false;
      choice = bet.choice ?? null;
      chips = new Map(bet.chips ?? []);
      mark();
      state.textContent = answer.problem;
      state.classList.add("refused");
    }

    button.addEventListener("click", go);
    typed.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      go();
    });
    typed.addEventListener("input", () => {
      const key = keyOf(typed.value);
      if (board.all && !spreading() && labels.has(key)) { // with characters one key is the whole token
        take(key);
        typed.value = "";
      }
      mark();
    });
    desk.addEventListener("change", (event) => { if (event.target.name === "bet-how") mark(); });
    tokens.addEventListener("click", ({ target, detail }) => {
      const node = target.closest("button");
      if (!node) return;
      const key = Number(node.dataset.id), again = !spreading() && choice === key;
      take(key);
      focusOn(node);
      if (again && !detail) go(); // pressed by a key for the second time
    });
    tokens.addEventListener("keydown", (event) => {
      const all = [...tokens.children], i = all.indexOf(event.target);
      const to = { ArrowLeft: i - 1, ArrowUp: i - 1, ArrowRight: i + 1, ArrowDown: i + 1, Home: 0, End: all.length - 1 }[event.key];
      if (i < 0 || to === undefined) return;
      event.preventDefault();
      focusOn(all[(to + all.length) % all.length])?.focus();
    });
    function focusOn(node) {
      tokens.querySelectorAll("[tabindex='0']").forEach((other) => { other.tabIndex = -1; });
      if (node) node.tabIndex = 0;
      return node;
    }

    /** The same bet drawn again, as after any news, leaves what is chosen, typed and said for it.
     * @param {any} value */
    function accept(value) {
      if (board && value && board.game === value.game && board.round === value.round) return;
      state.classList.remove("refused");
      if (!sent || board?.game !== value?.game) [chips, choice] = [new Map(), null];
      [board, sent] = [value, false];
      draw();
    }
    element.addEventListener("shown", ({ detail }) => accept(detail));
    for (const kind of ["change", "input"]) element.addEventListener(kind, (event) => event.stopPropagation());
  }

  document.addEventListener("playground-panel", (event) => {
    const root = /** @type {CustomEvent} */ (event).detail;
    if (root.dataset.panel === "generate") game(root);
  });
})();
