// The browser's half of playground/ui/chart.py: one plotly node per chart, redrawn in place.
//
// A value is null, a figure {data, layout}, {figure, summary, stream} or {append, summary, stream}. `append` maps a
// trace's index to {from, x, y}: points that follow its first `from` ones. A chart that finds a gap (it was not in the
// page, or a message was overtaken) asks the server for the whole figure of that stream.
(() => {
  "use strict";
  if (window.playgroundChart) return;

  const live = new Set(); // charts in the page, for the switch between light and dark
  const ARRAYS = {
    f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array,
    i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
  };

  const plotly = () => {
    window.playgroundPlotly ??= new Promise((resolve, reject) => {
      if (window.Plotly) return resolve(window.Plotly);
      const script = document.getElementById("playground-plotly");
      if (!script) return reject(new Error("no script"));
      script.addEventListener("load", () => resolve(window.Plotly));
      script.addEventListener("error", () => reject(new Error("not loaded")));
    });
    return window.playgroundPlotly;
  };

  const isDark = () =>
    document.body.classList.contains("dark") || document.documentElement.classList.contains("dark");

  function decode(array) {
    if (!array || !array.bdata) return array;
    const bytes = Uint8Array.from(atob(array.bdata), (c) => c.charCodeAt(0));
    return new ARRAYS[array.dtype](bytes.buffer);
  }

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

  // Small integers for numbers between two bounds: {steps, low, high, blank} in the trace's meta; `blank` is no cell.
  function widened(trace) {
    const packed = trace.meta?.packed;
    if (!packed) return trace;
    const codes = decode(trace.z);
    const [rows, columns] = String(trace.z.shape).split(",").map(Number);
    const z = [];
    for (let row = 0; row < rows; row++) {
      const numbers = new Float32Array(columns);
      for (let column = 0; column < columns; column++) {
        const code = codes[row * columns + column];
        numbers[column] = code === packed.blank
          ? NaN : packed.low + (code * (packed.high - packed.low)) / packed.steps;
      }
      z.push(numbers);
    }
    return { ...trace, z };
  }

  function place(layout, path, value) {
    const keys = path.split(".");
    const last = keys.pop();
    let at = layout;
    for (const key of keys) at = at[key] ??= {};
    at[last] = value;
  }

  function longer(old, from, more) {
    const joined = Array.prototype.slice.call(old, 0, from);
    for (const item of more) joined.push(item);
    return joined;
  }

  // ---- numbers as tables ----------------------------------------------------------------------------------------

  const quoted = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  const bare = (text) => new DOMParser().parseFromString(String(text), "text/html").body.textContent;

  // The name of place `i` on an axis: its tick's text where it has one.
  function placeName(axis, given, i) {
    const value = given ? given[i] : i;
    const tick = axis?.ticktext && Array.from(axis.tickvals).indexOf(value);
    return tick >= 0 ? bare(axis.ticktext[tick]) : value;
  }

  // A figure's numbers: a grid per map, else a row per point. `widened` traces only.
  function table(figure, traces) {
    const rows = [];
    for (const trace of traces) {
      const axis = (which) => figure.layout?.[(trace[which + "axis"] ?? which).replace(which, which + "axis")];
      const x = decode(trace.x), y = decode(trace.y);
      if (trace.type === "heatmap") {
        let z = trace.z;
        if (z?.bdata) {
          const [, columns] = String(z.shape).split(",").map(Number), flat = decode(z);
          z = Array.from({ length: flat.length / columns }, (_, r) => flat.subarray(r * columns, (r + 1) * columns));
        }
        rows.push([trace.name ?? "", ...Array.from(z[0] ?? [], (_, i) => placeName(axis("x"), x, i))]);
        z.forEach((row, i) => rows.push([placeName(axis("y"), y, i), ...row]));
      } else if (x || y) {
        if (!rows.length) rows.push(["series", "x", "y"]);
        const length = (x ?? y).length;
        for (let i = 0; i < length; i++) rows.push([trace.name ?? "", placeName(axis("x"), x, i), placeName(axis("y"), y, i)]);
      }
    }
    return lines(rows);
  }

  function download(text, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    link.download = `${name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // A button with data-csv, in a .table-box, saves the table beside it under that name.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-csv]");
    const found = button?.closest(".table-box")?.querySelector("table");
    if (!found) return;
    const cell = (td) => td.dataset.value ?? td.innerText.trim().replace(/^\u2212(?=[\d.])/, "-"); // a proper minus sign is no number elsewhere
    download(lines(Array.from(found.rows, (row) => Array.from(row.cells, cell))), button.dataset.csv);
  });

  window.playgroundChart = (element, props, trigger, server, watch) => {
    const plot = element.querySelector(".chart-plot");
    const words = element.querySelector(".chart-words");
    const box = element.querySelector(".chart-box");
    const reset = element.querySelector("[data-chart=reset]");
    let figure = null; // the whole figure as the server has it, in light colours
    let stream = null;
    let drawn = false;
    let scheduled = false;
    let fetching = null;

    const themed = (dark, width) => {
      const layout = tinted(figure.layout ?? {}, dark);
      layout.font = { ...layout.font, family: getComputedStyle(element).fontFamily };
      layout.autosize = true;
      if (width < 440) for (const [path, value] of Object.entries(layout.meta?.narrow ?? {})) place(layout, path, value);
      if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false; // a finger must still scroll the page
      return { data: figure.data.map((trace) => widened(tinted(trace, dark))), layout };
    };

    async function draw() {
      scheduled = false;
      if (!element.isConnected || !figure || !plot.clientWidth) return;
      let Plotly;
      try {
        Plotly = await plotly();
      } catch {
        words.textContent = "The drawing library did not load; reload the page. " + words.textContent;
        return;
      }
      if (!figure) return;
      const { data, layout } = themed(isDark(), plot.clientWidth);
      if (layout.height) plot.style.height = layout.height + "px";
      await Plotly.react(plot, data, layout, {
        displayModeBar: false, displaylogo: false, responsive: false, showTips: false, doubleClick: "reset+autosize",
      });
      if (!drawn) {
        drawn = true;
        plot.on("plotly_click", clicked);
        plot.on("plotly_relayout", () => zoomed());
      }
      zoomed();
      box.dataset.state = "drawn";
      box.dataset.draws = Number(box.dataset.draws ?? 0) + 1;
    }

    const schedule = () => {
      if (scheduled) return;
      scheduled = true;
      requestAnimationFrame(draw);
    };

    const axes = () => Object.keys(plot._fullLayout ?? {}).filter((key) => /^[xy]axis\d*$/.test(key));
    const home = (axis) => {
      const given = figure?.layout?.[axis] ?? {};
      return given.range && given.autorange === undefined ? given.range : null;
    };
    // Shows the reset button while any axis is not where the figure put it.
    function zoomed() {
      if (!reset || !plot._fullLayout) return;
      reset.hidden = !axes().some((axis) => {
        const now = plot._fullLayout[axis];
        if (now.fixedrange) return false;
        const range = home(axis);
        return range ? !range.every((end, i) => Math.abs(now.range[i] - end) < 1e-9 * (1 + Math.abs(end))) : !now.autorange;
      });
    }

    function clicked(event) {
      const point = event.points?.[0];
      if (!point) return;
      const cell = Array.isArray(point.pointNumber) ? point.pointNumber : null;
      const plain = (value) => (value === undefined || Number.isNaN(value) ? null : value);
      trigger("select", {
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
      if (format === "csv") return download(table(figure, data), box.dataset.name);
      for (const axis of axes()) layout[axis] = { ...layout[axis], range: plot._fullLayout[axis].range, autorange: false };
      const width = plot.clientWidth, height = plot.clientHeight;
      layout.paper_bgcolor = "#ffffff";
      await Plotly.downloadImage(
        { data, layout: { ...layout, width, height } },
        { format, width, height, scale: format === "png" ? 2 : 1, filename: box.dataset.name },
      );
    }

    // The current whole figure of a stream, when this chart has missed part of it.
    async function catchUp(wanted, tries = 3) {
      if (fetching === wanted) return;
      fetching = wanted;
      let whole = null;
      try {
        whole = await server.whole_figure(wanted);
      } catch {
        /* the next message tries again */
      }
      fetching = null;
      if (!whole || !element.isConnected || props.value?.stream !== wanted) return;
      accept(whole);
      if (props.value.append && !append(props.value) && tries > 1) await catchUp(wanted, tries - 1);
    }

    function append(value) {
      if (!figure || value.stream !== stream) return false;
      const parts = Object.entries(value.append);
      if (!parts.every(([index, part]) => (figure.data[index]?.x.length ?? -1) >= part.from)) return false;
      for (const [index, part] of parts) {
        const trace = figure.data[index];
        const keep = trace.x.length > part.from + part.x.length; // an older message than what is drawn
        if (!keep) for (const axis of ["x", "y"]) trace[axis] = longer(trace[axis], part.from, part[axis]);
      }
      return true;
    }

    function accept(value) {
      const next = value?.figure ?? (value?.data ? value : null);
      if (value?.append) {
        if (!append(value)) {
          catchUp(value.stream);
          return;
        }
      } else if (next) {
        if (box.dataset.state === "empty") box.dataset.state = "waiting"; // a place may be hidden as long as it is empty
        stream = value.stream ?? null;
        figure = { ...next, data: next.data.map((trace) => ({ ...trace })) };
        if (stream) for (const trace of figure.data) for (const axis of ["x", "y"]) trace[axis] = decode(trace[axis]);
      } else {
        figure = stream = null;
        if (drawn) window.Plotly.purge(plot);
        drawn = false;
        box.dataset.state = "empty";
      }
      const summary = value?.summary ?? "";
      words.textContent = summary;
      plot.setAttribute("aria-label", summary || "Chart");
      schedule();
    }

    for (const button of element.querySelectorAll("[data-chart]")) {
      button.addEventListener("click", async (event) => {
        event.stopPropagation();
        const wish = button.dataset.chart;
        if (wish !== "reset") return save(wish);
        const Plotly = await plotly();
        await Plotly.relayout(
          plot,
          Object.fromEntries(axes().flatMap((axis) => {
            const range = home(axis);
            return range ? [[`${axis}.range`, range.slice()]] : [[`${axis}.autorange`, figure.layout?.[axis]?.autorange ?? true]];
          })),
        );
      });
    }

    let width = plot.clientWidth;
    const sized = new ResizeObserver(() => {
      if (!element.isConnected) {
        sized.disconnect();
        live.delete(schedule);
        if (drawn) window.Plotly.purge(plot);
        return;
      }
      if (plot.clientWidth === width) return;
      width = plot.clientWidth;
      schedule();
    });
    sized.observe(plot);
    live.add(schedule);
    watch("value", () => accept(props.value));
    accept(props.value);
  };

  const follow = () => {
    let dark = isDark();
    const look = new MutationObserver(() => {
      if (dark === isDark()) return;
      dark = isDark();
      for (const redraw of live) redraw();
    });
    for (const node of [document.body, document.documentElement]) {
      look.observe(node, { attributes: true, attributeFilter: ["class"] });
    }
  };
  if (document.body) follow();
  else document.addEventListener("DOMContentLoaded", follow);
})();
