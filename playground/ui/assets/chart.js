// The browser's half of playground/ui/chart.py: one plotly node per chart, redrawn in place.
//
// playgroundChart(element, clicked) returns what draws a value there: null, {figure: {data, layout}, summary, about}, or a
// {problem} in place of a picture. `clicked` hears of clicks.
(() => {
  "use strict";

  const { bare, download, grid, named, table } = window.playgroundTables;
  document.querySelector("base[href='./']")?.remove(); // with it, plotly names clip paths by the page's address, and loses them
  const live = new Set(); // charts in the page, for the switch between light and dark

  let loaded;
  const plotly = () => (loaded ??= new Promise((resolve) => {
    if (window.Plotly) return resolve(window.Plotly);
    const script = document.getElementById("playground-plotly");
    for (const event of ["load", "error"]) script.addEventListener(event, () => resolve(window.Plotly ?? null));
  }));

  const isDark = () => document.body.classList.contains("dark");

  // A copy in the colours of the page. Encoded and typed arrays hold no colours and are shared.
  function tinted(part, dark) {
    if (typeof part === "string") return dark ? window.playgroundPalette?.[part] ?? part : part;
    if (part === null || typeof part !== "object" || part.bdata || ArrayBuffer.isView(part)) return part;
    if (Array.isArray(part)) {
      const colors = typeof part[0] === "object" || part.some((item) => typeof item === "string");
      return colors ? part.map((item) => tinted(item, dark)) : part.slice(); // plotly writes into ranges
    }
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, tinted(item, dark)]));
  }

  function place(layout, path, value) {
    const keys = path.split("."), last = keys.pop();
    keys.reduce((at, key) => (at[key] ??= {}), layout)[last] = value;
  }

  // ---- room for words -------------------------------------------------------------------------------------------

  const ruler = document.createElement("canvas").getContext("2d");
  function wide(text, size, family) {
    ruler.font = `${size}px ${family}`;
    return ruler.measureText(text).width;
  }

  // The ticks that can be read beside each other, and their angle: names lie slanted where they do not fit, and every
  // n-th is left out where even that is too much. `axis` as plotly has drawn it, but for its length.
  function readable(axis, upright, length) {
    const size = axis.tickfont.size, texts = Array.from(axis.ticktext, bare);
    const places = Array.from(axis.tickvals, (value) => axis.l2p(axis.d2l(value)) * length / axis._length);
    const widths = texts.map((text) => wide(text, size, axis.tickfont.family));
    const keep = (room) => places.reduce((kept, place, i) => {
      const last = kept.at(-1);
      return last === undefined || Math.abs(place - places[last]) >= room(i, last) ? [...kept, i] : kept;
    }, []);
    const lines = 1.2 * size, slant = typeof axis.tickangle === "number" ? axis.tickangle : 0;
    let kept = keep(upright ? () => lines : slant ? () => lines / Math.sin(Math.abs(slant) * Math.PI / 180) : (i, j) => (widths[i] + widths[j]) / 2 + 6);
    let angle = slant;
    if (kept.length < texts.length && !upright && !slant && texts.some((text) => /[^\d\s.,−-]/.test(text))) {
      angle = -60;
      kept = keep(() => lines / Math.sin(Math.PI / 3));
    }
    return kept.length < texts.length || angle !== slant
      ? { tickvals: kept.map((i) => axis.tickvals[i]), ticktext: kept.map((i) => axis.ticktext[i]), ...(angle ? { tickangle: angle } : {}) } : null;
  }

  // The words of a map's cells as text of their own, each black or white: whichever is read better on its cell.
  function inked(trace) {
    if (trace.type !== "heatmap" || !trace.texttemplate) return;
    const stops = trace.colorscale.map(([at, color]) => [at, [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255)]);
    const ink = (z) => {
      const at = Math.min(Math.max((z - trace.zmin) / (trace.zmax - trace.zmin), 0), 1);
      const above = Math.max(stops.findIndex(([place]) => place >= at), 1);
      const [[low, from], [high, to]] = stops.slice(above - 1, above + 1), way = (at - low) / (high - low);
      const [red, green, blue] = from.map((start, i) => {
        const part = start + way * (to[i] - start);
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
    };
    trace.text = Array.from(grid(trace.z), (row, i) => Array.from(row, (z, j) =>
      Number.isFinite(z) ? `<span style="color: ${ink(z)}">${trace.text[i][j]}</span>` : ""));
  }

  // What changes in a map whose cells are too small for its words or for gaps between them.
  function legible(trace, width, height, family) {
    if (trace.type !== "heatmap") return null;
    const rows = grid(trace.z), across = width / rows[0].length, down = height / rows.length;
    const change = { ...(trace.xgap && across < 6 && { xgap: 0 }), ...(trace.ygap && down < 6 && { ygap: 0 }) };
    if (trace.texttemplate) {
      const wanted = trace.textfont.size, widest = Math.max(...trace.text.flat().map((text) => wide(bare(text), wanted, family))) / wanted;
      const most = Math.min(wanted, Math.floor((across - 4) / widest), Math.floor(down / 1.15));
      if (most < 8) change.texttemplate = "";
      else if (most < wanted) change.textfont = { ...trace.textfont, size: most };
    }
    return Object.keys(change).length ? change : null;
  }

  window.playgroundChart = (element, clicked) => {
    const plot = element.querySelector(".chart-plot");
    const words = element.querySelector(".chart-words");
    const box = element.querySelector(".chart-box");
    let figure = null; // as the server has it, in light colours
    let about = null; // what saved pictures and tables say of it
    let whole = null; // the same as text
    let marks = null; // its frames and lines as text, apart from all else
    let drawn = false;
    let fitting = null; // what of the figure had to give way to its width
    let scheduled = false;

    const themed = (dark, width) => {
      const layout = tinted(figure.layout ?? {}, dark);
      layout.font = { ...layout.font, family: getComputedStyle(element).fontFamily };
      layout.autosize = true;
      if (width < 440) for (const [path, value] of Object.entries(layout.meta?.narrow ?? {})) place(layout, path, value);
      if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false; // a finger must still scroll the page
      const data = figure.data.map((trace) => tinted(trace, dark));
      data.forEach((trace, i) => inked(Object.assign(trace, fitting?.traces[i])));
      for (const [part, change] of Object.entries(fitting?.layout ?? {})) layout[part] = { ...layout[part], ...change };
      if (fitting?.height) layout.height = fitting.height;
      return { data, layout };
    };

    // What has to give way for the words of what is drawn now to be read; null where nothing has.
    function unfit(data) {
      const full = plot._fullLayout, { l, r, t, b } = full._size, changed = {};
      const side = full.meta?.square && Math.min(full.width - l - r, full.height - t - b);
      const length = (axis) => side || axis._length;
      for (const axis of axes()) {
        const drawn = full[axis];
        const change = drawn.ticktext?.length && drawn.showticklabels && readable(drawn, axis.startsWith("y"), length(drawn));
        if (change) changed[axis] = change;
      }
      if (side) changed.margin = { l, r: full.width - l - side, t, b, autoexpand: false }; // else plotly adds room for the colour bar
      const traces = data.map((trace) => {
        const x = full[(trace.xaxis ?? "x").replace("x", "xaxis")], y = full[(trace.yaxis ?? "y").replace("y", "yaxis")];
        return legible(trace, length(x), length(y), x.tickfont?.family);
      });
      return Object.keys(changed).length || traces.some(Boolean) ? { layout: changed, height: side && t + side + b, traces } : null;
    }

    async function draw() {
      scheduled = false;
      if (!figure || !plot.clientWidth) return;
      const Plotly = await plotly();
      if (!figure) return;
      if (!Plotly) return void (words.textContent = `The drawing library did not load. Reload the page. ${words.textContent}`);
      const calm = { displayModeBar: false, displaylogo: false, responsive: false, doubleClick: "reset+autosize" };
      fitting = null;
      const { data, layout } = themed(isDark(), plot.clientWidth);
      if (layout.height) plot.style.height = layout.height + "px";
      // plotly would stretch the range of square cells where the axes of the figure before were tied in another way
      const tied = (axis) => axis?.scaleanchor && `${axis.scaleanchor} ${axis.constrain}`;
      if (drawn && tied(plot.layout?.yaxis) !== tied(layout.yaxis)) drawn = void Plotly.purge(plot);
      await Plotly.react(plot, data, layout, calm);
      if (figure && (fitting = unfit(data))) {
        const again = themed(isDark(), plot.clientWidth);
        plot.style.height = again.layout.height + "px";
        await Plotly.react(plot, again.data, again.layout, calm);
      }
      if (!drawn) {
        drawn = true;
        plot.on("plotly_click", pressed);
      }
      const { xaxis: x, shapes: [framed] = [] } = plot._fullLayout; // of a map wider than its place, the framed cell is in sight
      if (!plot.scrollLeft && framed?.xref === "x") plot.scrollLeft = x._offset + x.l2p(x.d2l(framed.x1)) + 48 - plot.clientWidth;
      box.dataset.state = "drawn";
    }

    async function frame(next) {
      figure = { ...next, data: figure.data };
      await window.Plotly.relayout(plot, { shapes: tinted(next.layout.shapes ?? [], isDark()) });
    }

    const schedule = () => {
      if (scheduled) return;
      scheduled = true;
      requestAnimationFrame(draw);
    };

    const axes = () => Object.keys(plot._fullLayout).filter((key) => /^[xy]axis\d*$/.test(key));

    function pressed({ points: [point] }) {
      const cell = Array.isArray(point.pointNumber) ? point.pointNumber : null;
      const plain = (value) => (value === undefined || Number.isNaN(value) ? null : value);
      clicked({
        index: cell ? [cell[0], cell[1]] : [point.curveNumber, point.pointNumber],
        value: plain(cell ? point.z : point.data.orientation === "h" ? point.x : point.y),
        trace: point.curveNumber,
        x: plain(point.x),
        y: plain(point.y),
        text: plain(point.customdata ?? point.text),
      });
    }

    async function save(format) {
      if (!figure) return;
      const Plotly = await plotly();
      const { data, layout } = themed(false, plot.clientWidth);
      if (format === "csv") return download(table(figure, data), box.dataset.name, about);
      for (const axis of axes()) layout[axis] = { ...layout[axis], range: plot._fullLayout[axis].range, autorange: false };
      const width = plot.clientWidth, now = plot._fullLayout._size;
      // what it shows stands below it, in as many lines as it takes; the picture keeps its own place
      const rows = about?.line ? about.line.match(new RegExp(`.{1,${Math.max(20, Math.floor(width / 5.6))}}(?: |$)`, "g")) : [];
      const room = rows.length ? 14 * rows.length + 8 : 0, height = plot.clientHeight + room;
      if (rows.length) {
        const font = { size: 10, color: "#5c6875" };
        layout.margin = { l: now.l, r: now.r, t: now.t, b: now.b + room, autoexpand: false };
        layout.title = { text: rows.join("<br>"), font, x: 0, xanchor: "left", y: 0, yanchor: "bottom", yref: "container", pad: { l: 8, b: 6 } };
      }
      layout.paper_bgcolor = "#ffffff";
      await Plotly.downloadImage(
        { data, layout: { ...layout, width, height } },
        { format, width, height, scale: format === "png" ? 2 : 1, filename: named(box.dataset.name, about) },
      );
    }

    function accept(value) {
      const next = value?.figure ?? null, before = whole;
      about = value?.about;
      const framed = JSON.stringify(next?.layout?.shapes ?? []), same = marks === framed;
      whole = next && JSON.stringify({ ...next, layout: { ...next.layout, shapes: 0 } });
      marks = framed;
      const summary = value?.summary ?? "";
      words[value?.problem ? "innerHTML" : "textContent"] = value?.problem ?? summary;
      words.classList.toggle("aloud", Boolean(value?.aloud));
      plot.setAttribute("aria-label", summary || "Chart");
      if (whole && whole === before) {
        if (!same && drawn && box.dataset.state === "drawn") return void frame(next); // the same picture, framed elsewhere
        if (same) return;
      }
      figure = next;
      if (next) {
        if (box.dataset.state === "empty") box.dataset.state = "waiting"; // a place may be hidden as long as it is empty
      } else {
        if (drawn) window.Plotly.purge(plot);
        drawn = false;
        box.dataset.state = "empty";
      }
      schedule();
    }

    for (const button of element.querySelectorAll("[data-chart]")) {
      button.addEventListener("click", () => save(button.dataset.chart));
    }

    let width = plot.clientWidth;
    new ResizeObserver(() => {
      if (plot.clientWidth === width) return;
      width = plot.clientWidth;
      schedule();
    }).observe(plot);
    live.add(schedule);
    return accept;
  };

  // A menu closes where something was chosen of it, and at a click elsewhere or Escape.
  const MENU = "details:is(.menu, .chart-menu)[open]";
  document.addEventListener("click", ({ target }) => {
    for (const menu of document.querySelectorAll(MENU)) menu.open = menu.contains(target) && !target.closest("[data-chart]");
  });
  document.addEventListener("keydown", ({ key }) => {
    const menu = key === "Escape" && document.querySelector(MENU);
    if (!menu) return;
    menu.querySelector("summary").focus();
    menu.open = false;
  });

  // A menu that closes when the mouse is pressed lets its release through to a legend below, which acts on that alone.
  let pressed = null;
  document.addEventListener("mousedown", ({ target }) => { pressed = target; }, true);
  document.addEventListener("mouseup", (event) => {
    if (event.target.matches?.(".legendtoggle") && event.target !== pressed) event.stopPropagation();
  }, true);

  let dark = isDark();
  new MutationObserver(() => {
    if (dark === isDark()) return;
    dark = isDark();
    for (const redraw of live) redraw();
  }).observe(document.body, { attributeFilter: ["class"] });
})();
