// @ts-check
// The browser's half of ui/panel.py: the selection lives here, the newest one wins, only slots that changed are redrawn.
//
// In a panel's HTML, `data-slot` names a place. What is clicked inside `data-reveal` brings the card with the slot of that
// name into sight. What changes the selection: a button with `data-move` (JSON), a field with a name, an arrow button
// with `data-step` (+1 or -1) `data-of` a field of radio buttons, a <details data-fold="…"> that is opened or closed, a
// click in a chart. A button with `data-try` is pressed while the selection holds its texts. Fields show the selection,
// but nothing is written into a field that somebody types in. A part with `data-if="view:steps view:heads"` is seen while
// the field `view` is one of these words, one with `data-if="lens"` while that field is true, some text or a number.
// A panel that `data-follows` asks again when there are news of jobs. An <output data-of="field"> says what a field holds.
// What other buttons do is said in deeds.js.
//
// A place with `data-own` is drawn by a script of its own: it hears `shown` with the slot's content. Such a script begins at
// the event `playground-panel`, whose detail is the panel's form, and has what it needs of the panel in its `panel`.

(() => {
  "use strict";

  const TYPING = 250; // milliseconds without a key, after which a text is read

  /** @typedef {{slot: string, [more: string]: any}} Click */
  /** @typedef {(content: any) => void} Show */

  /** One panel.
   * @param {HTMLElement} element @param {{value: any}} props
   * @param {(name: string, heard: () => void) => void} watch @param {(event: string) => void} trigger */
  function panel(element, props, watch, trigger) {
    const { known, ask, address, Newest } = window["playground"];
    const root = /** @type {HTMLFormElement} */ (element.querySelector(".panel"));
    const name = root.dataset.panel ?? "", tab = root.dataset.tab ?? name;
    const start = JSON.parse(root.dataset.start ?? "{}");
    const ofModel = (root.dataset.ofModel ?? "").split(" ").filter(Boolean); // what each model has of its own
    const inAddress = address.part(root, tab, start);

    let named = new URLSearchParams(location.search).get("model"); // the address's model, until it is chosen
    let linked = inAddress.read(); // what the address selects of it, and over that what a visitor chooses meanwhile
    /** @type {Record<string, any>} */
    let selection = { ...start, ...(props.value?.fresh ? {} : linked), ...(props.value?.move ?? {}) };
    /** @type {{of: string, move: Record<string, any>} | null} what a lesson wants of a model that is not chosen yet */
    let arranged = props.value?.of && props.value.of !== known.model ? props.value : null;
    /** @type {string | null} the prompt that a lesson has set */
    let given = props.value?.move?.prompt ?? null;
    /** @type {Record<string, string>} what leads to the model that is shown, as the server says it */
    let link = {};
    /** @type {Record<string, any>} */
    const atHome = {};
    /** @type {Record<string, string>} slot → digest of what it shows */
    const have = {};
    /** @type {Record<string, Show>} */
    const shows = {};
    const newest = new Newest();
    let missed = false; // whether there were news while an answer was awaited, which may not hold them
    let reveal = ""; // the slot to bring into sight once it is shown
    let waiting = false; // whether something changed while nobody could see the panel

    /** @param {string} selector @returns {any[]} */
    const all = (selector) => [...root.querySelectorAll(selector)];

    // ---- the selection ------------------------------------------------------------------------------------------

    const owner = () => `${known.model} ${selection.subject ?? ""}`;

    /** Change the selection and show what belongs to it.
     * @param {Record<string, any>} change @param {Click | null} [clicked] @param {boolean} [visited] */
    function move(change, clicked = null, visited = false) {
      const before = owner();
      selection = { ...selection, ...change };
      if (named) linked = { ...linked, ...change };
      if (owner() !== before) exchange(before);
      follow(clicked, visited);
    }

    /** What a lesson wants. A `fresh` one begins with everything as at first; `of` is the model that it is about.
     * @param {{move: Record<string, any>, fresh?: boolean, of?: string}} wanted */
    function arrange({ move: change, fresh, of }) {
      if (fresh) for (const each of Object.keys(atHome)) delete atHome[each];
      arranged = of && of !== known.model ? { of, move: change } : null;
      given = change.prompt ?? given;
      root.dispatchEvent(new Event("arranged"));
      move(fresh ? { ...start, ...change } : change);
    }

    /** Put away what the model before has of its own, and take out what this one has. A prompt that was typed stays,
     * without the tokens chosen in another one.
     * @param {string} before */
    function exchange(before) {
      const { typed } = selection, prompt = /** @type {HTMLInputElement | null} */ (root.elements.namedItem("prompt"));
      for (const each of prompt ? [...ofModel, "prompt"] : ofModel) {
        atHome[`${before} ${each}`] = selection[each];
        if (each !== "prompt" || !typed) selection[each] = atHome[`${owner()} ${each}`] ?? start[each];
      }
      if (prompt && typed) Object.assign(selection, changeOf(prompt), { prompt: selection.prompt });
    }

    /** Ask what to show. News (`quiet`) wait for what a visitor asked, and dim nothing.
     * @param {Click | null} clicked @param {boolean} visited @param {boolean} [quiet] */
    async function follow(clicked, visited, quiet = false) {
      if (quiet && newest.awaits) return void (missed = true);
      newest.drop();
      if (!known.visitor || !known.model || !root.offsetParent) {
        rest();
        return wait();
      }
      waiting = missed = false;
      if (!quiet) root.setAttribute("aria-busy", "true");
      const question = (/** @type {object} */ more) => () => ({ visitor: known.visitor, selection: asked(), have, ...more });
      const shown = await newest.do(async (/** @type {any} */ ask) => {
        const answer = await ask(`/view/${name}`, question({ clicked }));
        take(answer, quiet);
        if (answer.selection) address.write(tab, visited);
        for (let late = answer; late.later?.length; take({ ...late, selection: null }, quiet)) {
          const said = new Set(); // the cards in which a place already says that it is being computed
          for (const at of late.later.map(place)) {
            const card = at?.closest(".card") ?? at?.closest(".stack");
            at?.setAttribute("aria-busy", "true");
            at?.toggleAttribute("data-says", !said.has(card));
            said.add(card);
          }
          root.removeAttribute("aria-busy"); // what is shown already holds
          late = await ask(`/view/${name}`, question({ later: true }));
        }
        return true;
      });
      if (!shown) return; // something newer is asked
      root.removeAttribute("data-new"); // from now on nothing keeps room for a first answer
      rest();
      if (missed) follow(null, false, true);
    }

    const sight = new IntersectionObserver((seen) => {
      if (seen.some((each) => each.isIntersecting) && waiting) follow(null, false);
    });

    /** Ask once the panel can be seen; also if it is hidden for less than a frame, of which an observer never hears. */
    function wait() {
      waiting = true;
      sight.unobserve(root);
      sight.observe(root);
    }

    /** No answer is awaited any more. */
    function rest() {
      for (const busy of [root, ...all("[aria-busy]")]) busy.removeAttribute("aria-busy");
    }

    /** The selection as the server gets it. */
    const asked = () => ({ ...selection, model: known.model });

    // ---- what is shown --------------------------------------------------------------------------------------------

    /** @param {string} slot @returns {HTMLElement | null} */
    const place = (slot) => root.querySelector(`[data-slot="${slot}"]`);

    /** Why something cannot be shown or done stays until the visitor does something else.
     * @param {{problem?: string, link?: Record<string, string>, selection?: Record<string, any> | null, slots?: Record<string, [string, any]>, later?: string[]}} answer
     * @param {boolean} [quiet] */
    function take(answer, quiet = false) {
      const notice = place("problem");
      if (answer.problem || !quiet) {
        root.toggleAttribute("data-problem", Boolean(answer.problem));
        if (notice) notice.textContent = answer.problem ?? "";
      }
      if (answer.selection) {
        selection = answer.selection;
        props.value = selection;
        link = answer.link ?? {};
      }
      for (const [slot, [digest, content]] of Object.entries(answer.slots ?? {})) {
        have[slot] = digest;
        show(slot, content);
      }
      fill();
      if (reveal && !quiet && answer.slots && !answer.later?.includes(reveal)) intoView();
    }

    /** Bring what a click asked for into sight, but move nothing where much of it is seen already. */
    function intoView() {
      const shown = place(reveal), card = shown?.closest(".card") ?? shown;
      if (!card || !shown?.offsetParent) return;
      reveal = "";
      const { top, bottom } = card.getBoundingClientRect();
      if (top > innerHeight * 2 / 3 || bottom < innerHeight / 3) card.scrollIntoView({ block: "nearest", behavior: "smooth" });
    }

    /** @param {string} slot @param {any} content */
    function show(slot, content) {
      const at = place(slot);
      if (!at) return;
      at.removeAttribute("aria-busy");
      if (at.hasAttribute("data-own")) return void at.dispatchEvent(new CustomEvent("shown", { detail: content }));
      if (at.querySelector(":scope > .chart-box")) {
        shows[slot] ??= window["playgroundChart"](at, (/** @type {object} */ event) => move({}, { ...event, slot }));
        return shows[slot](content);
      }
      const open = new Set([...at.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
      const focused = at.contains(document.activeElement) ? markOf(document.activeElement) : null;
      at.innerHTML = content?.problem ?? content ?? "";
      for (const each of at.querySelectorAll("details > summary")) {
        if (open.has(each.textContent)) /** @type {HTMLDetailsElement} */ (each.parentElement).open = true;
      }
      const again = focused && [...at.querySelectorAll("button, summary, a")].find((each) => markOf(each) === focused);
      if (again) /** @type {HTMLElement} */ (again).focus();
      document.dispatchEvent(new Event("playground-drawn"));
    }

    /** What tells an element from its neighbours, also once it was drawn again.
     * @param {Element | null} node */
    const markOf = (node) => {
      const { mark, move } = /** @type {HTMLElement} */ (node)?.dataset ?? {};
      return mark ?? move ?? node?.textContent ?? null;
    };

    /** Whether a field can hold this; a drop-down that has no such option stays as the server has drawn it.
     * @param {Element} field @param {string} value */
    const takes = (field, value) => !(field instanceof HTMLSelectElement) || [...field.options].some((each) => each.value === value);

    /** Let the fields say what is selected. A text that is being typed stays. */
    function fill() {
      for (const field of root.elements) {
        const input = /** @type {HTMLInputElement} */ (field), value = selection[input.name];
        if (!input.name || value === undefined || value === null) continue;
        if (input.type === "radio") input.checked = input.value === String(value);
        else if (input.type === "checkbox") input.checked = Boolean(value);
        else if (input !== document.activeElement && input.value !== String(value) && takes(field, String(value))) input.value = String(value);
      }
      for (const output of all("output[data-of]")) output.textContent = String(selection[output.dataset.of] ?? "");
      for (const fold of all("[data-fold]")) fold.open = Boolean(selection[fold.dataset.fold]);
      for (const part of all("[data-if]")) part.hidden = !holds(part.dataset.if);
      for (const arrow of all("[data-step]")) arrow.disabled = !neighbour(arrow);
      for (const tried of all("[data-try]")) tried.ariaPressed = String(isTried(tried));
      for (const each of all(".seg input:checked")) intoSight(each.closest("label"));
    }

    /** Whether the selection holds one of these: `field:value`, or a field that is not empty.
     * @param {string} words */
    const holds = (words) => words.split(" ").some((each) => {
      const [field, value] = each.split(":"), held = selection[field];
      return value === undefined ? held || held === 0 : String(held) === value;
    });

    /** Whether the selection holds the texts of this button's move; what the move sets back does not count.
     * @param {HTMLElement} button */
    const isTried = (button) => Object.entries(JSON.parse(button.dataset.move ?? "{}"))
      .every(([field, value]) => !value?.length || value === selection[field]);

    /** @param {HTMLElement} label */
    function intoSight(label) {
      const row = label.parentElement;
      if (row) row.scrollLeft = label.offsetLeft - row.offsetLeft - (row.clientWidth - label.clientWidth) / 2;
    }

    // ---- what a visitor does ----------------------------------------------------------------------------------------

    /** The radio button before or after the chosen one.
     * @param {HTMLElement} arrow @returns {HTMLInputElement | undefined} */
    function neighbour(arrow) {
      const choices = all(`input[name="${arrow.dataset.of}"]`);
      const at = choices.findIndex((each) => each.value === String(selection[arrow.dataset.of ?? ""]));
      return choices[at + Number(arrow.dataset.step)];
    }

    /** A field's new value, and the fields that it sets back (`data-resets`).
     * @param {HTMLInputElement} field */
    const changeOf = (field) => ({
      ...Object.fromEntries((field.dataset.resets ?? "").split(" ").filter(Boolean).map((each) => [each, null])),
      ...(field.name === "prompt" ? { typed: true } : {}),
      [field.name]: valueOf(field),
    });
    /** @param {HTMLInputElement} field */
    const valueOf = (field) =>
      field.type === "checkbox" ? field.checked
        : field.type === "number" || field.type === "range" ? Number(field.value) : field.value;

    root.addEventListener("submit", (event) => event.preventDefault());
    root.addEventListener("click", (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      reveal = /** @type {HTMLElement | null} */ (target.closest("[data-reveal]"))?.dataset.reveal ?? "";
      const summary = target.closest("summary"), fold = /** @type {HTMLDetailsElement | null} */ (summary?.parentElement);
      if (fold?.dataset.fold) { // not by "toggle", which comes a moment later: an answer in between closed the part again
        event.preventDefault();
        fold.open = !fold.open;
        return move({ [fold.dataset.fold]: fold.open });
      }
      const button = /** @type {HTMLElement | null} */ (target.closest("[data-move]"));
      if (button) return move(JSON.parse(button.dataset.move ?? "{}"), null, button.hasAttribute("data-visit"));
      const arrow = /** @type {HTMLElement | null} */ (target.closest("[data-step]"));
      const next = arrow && neighbour(arrow);
      if (next) move({ [next.name]: next.value });
    });

    root.addEventListener("toggle", (event) => { // which also comes where the browser opens a part, to show what it found
      const fold = /** @type {HTMLDetailsElement} */ (event.target), field = fold.dataset.fold;
      if (field && Boolean(selection[field]) !== fold.open) move({ [field]: fold.open });
    }, true);

    let typing = 0;
    root.addEventListener("input", (event) => {
      const field = /** @type {HTMLInputElement} */ (event.target);
      if (field.type === "range") {
        for (const output of all(`output[data-of="${field.name}"]`)) output.textContent = field.value;
      }
      if (!field.name || (field.type !== "text" && field.tagName !== "TEXTAREA")) return;
      clearTimeout(typing);
      typing = setTimeout(() => move(changeOf(field)), TYPING);
    });
    root.addEventListener("change", (event) => {
      const field = /** @type {HTMLInputElement} */ (event.target);
      if (!field.name) return;
      clearTimeout(typing);
      if (selection[field.name] !== valueOf(field)) move(changeOf(field), null, field.name === "view");
    });

    // a prompt may hold line breaks: Shift and Enter makes one, Enter alone is the end of typing
    root.addEventListener("keydown", (event) => {
      const field = /** @type {HTMLInputElement} */ (event.target);
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.defaultPrevented || !field.matches("textarea[rows='1'][name]")) return;
      event.preventDefault();
      clearTimeout(typing);
      move(changeOf(field));
    });

    // buttons in a row are one stop of the tab key, with arrows inside
    root.addEventListener("keydown", (event) => {
      const { key } = event, target = /** @type {HTMLElement} */ (event.target);
      const row = /** @type {HTMLElement | null} */ (target.closest("[data-arrows]"));
      if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
      const buttons = /** @type {HTMLElement[]} */ ([...row.querySelectorAll("button, [role=button]")]);
      const at = buttons.indexOf(target), line = Number(row.dataset.arrows) || 1; // how far up and down lead
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - line, ArrowDown: at + line, Home: 0, End: buttons.length - 1 }[key];
      const pressed = (key === "Enter" || key === " ") && target.matches("[role=button]");
      if (at < 0 || (to === undefined && !pressed)) return;
      event.preventDefault();
      if (to === undefined) return target.click();
      const next = buttons[Math.min(Math.max(to, 0), buttons.length - 1)];
      for (const each of buttons) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    });

    // ---- the address -------------------------------------------------------------------------------------------------

    address.shown[tab] = (/** @type {boolean} */ copied) => {
      const { share, ...words } = link; // what the model is called for others, if this server keeps it for them
      return { ...words, ...(copied && share ? { model: share } : {}), ...inAddress.says(selection) };
    };
    window.addEventListener("popstate", () => {
      const found = inAddress.read();
      if (Object.keys(found).length) move({ ...start, ...found });
    });

    // ---- what others say ---------------------------------------------------------------------------------------------

    document.addEventListener("playground", (event) => {
      const { model } = /** @type {CustomEvent} */ (event).detail;
      if (model === undefined) return follow(null, false);
      const before = `${selection.model || model} ${selection.subject ?? ""}`;
      selection = { ...selection, model };
      if (before !== owner()) exchange(before);
      if (named && [named, `shipped-${named}`].includes(model)) { // a link's model is chosen a moment after the page opens
        selection = { ...selection, ...linked };
        named = null;
      }
      if (arranged && arranged.of === model) selection = { ...selection, ...arranged.move };
      arranged = null;
      follow(null, false);
    });
    if (root.hasAttribute("data-follows")) {
      document.addEventListener("playground-news", () => (root.offsetParent ? follow(null, false, true) : wait()));
    }
    watch("value", () => props.value?.move && arrange(props.value));
    Object.assign(root, { panel: { move, take, show, trigger, selection: asked, given: () => given } });
    document.dispatchEvent(new CustomEvent("playground-panel", { detail: root }));
    fill();
    follow(null, false);
  }

  window["playground"] = { ...window["playground"], panel };
})();
