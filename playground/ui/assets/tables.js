// Numbers as tables: what a chart or a table of the page holds, saved as CSV. The charts read their arrays by it, too.
(() => {
  "use strict";

  const ARRAYS = {
    f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array,
    i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
  };

  function decode(array) {
    if (!array || !array.bdata) return array;
    const bytes = Uint8Array.from(atob(array.bdata), (c) => c.charCodeAt(0));
    return new ARRAYS[array.dtype](bytes.buffer);
  }

  // The fewest digits that name this number of 32 bits (of 64 where it is one), and no more: 0.1, not 0.10000000149.
  function digits(value) {
    if (typeof value !== "number" || Math.fround(value) !== value) return String(value);
    const few = [6, 7, 8].map((count) => Number(value.toPrecision(count))).find((short) => Math.fround(short) === value);
    return String(few ?? Number(value.toPrecision(9)));
  }
  // A spreadsheet takes words that begin so for a formula; with an apostrophe before them they are words.
  const harmless = (text) => (/^\s*[=+\-@\t\r\n＝＋－＠]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text);
  const quoted = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : harmless(digits(value));
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  const bare = (text) => new DOMParser().parseFromString(String(text), "text/html").body.textContent;

  // The name of place `i` on an axis: its tick's text where it has one, in full where the tick is shortened.
  function placeName(layout, axis, given, i) {
    const value = given ? given[i] : i;
    const whole = layout?.meta?.names?.[axis]?.[value];
    if (whole !== undefined) return bare(whole);
    const tick = layout?.[axis]?.ticktext && Array.from(layout[axis].tickvals).indexOf(value);
    return tick >= 0 ? bare(layout[axis].ticktext[tick]) : value;
  }

  function grid(z) {
    if (!z?.bdata) return z;
    const [, columns] = String(z.shape).split(",").map(Number), flat = decode(z);
    return Array.from({ length: flat.length / columns }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
  }

  // A figure's numbers: a grid per map, else a row per point. A trace's `meta.saved` names what is saved of it instead
  // of what is drawn (its colours may stand for roots or logarithms): {title: numbers}; `meta.x` is where its points are,
  // `meta.series` its name where several share one in the legend.
  function table(figure, traces) {
    const rows = [];
    for (const trace of traces) {
      const axis = (which) => (trace[which + "axis"] ?? which).replace(which, which + "axis");
      const name = (which, given, i) => placeName(figure.layout, axis(which), given, i);
      const x = decode(trace.meta?.x ?? trace.x), y = decode(trace.y), error = trace.error_x ?? trace.error_y;
      const more = error && [decode(error.array), decode(error.arrayminus ?? error.array)]; // how far up, how far down
      if (trace.type === "heatmap") {
        for (const [title, numbers] of Object.entries(trace.meta?.saved ?? { [trace.name ?? ""]: trace.z })) {
          const z = grid(numbers);
          rows.push([title, ...Array.from(z[0] ?? [], (_, i) => name("x", x, i))]);
          z.forEach((row, i) => rows.push([name("y", y, i), ...row]));
        }
      } else if (x || y) {
        if (!rows.length) rows.push(["series", "x", "y", ...(traces.some((t) => t.error_x ?? t.error_y) ? ["above", "below"] : [])]);
        const length = (x ?? y).length, series = bare(trace.meta?.series ?? trace.name ?? "");
        for (let i = 0; i < length; i++) rows.push([series, name("x", x, i), name("y", y, i), ...(more ? more.map((side) => side[i]) : [])]);
      }
    }
    return rows;
  }

  // A table under a line that says what it is of. Programs skip lines that begin with #.
  function download(rows, name, about) {
    const text = (about?.line ? `# ${bare(about.line).replace(/\s+/g, " ")}\r\n` : "") + lines(rows);
    window.playground.save(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }), `${named(name, about)}.csv`);
  }

  const named = (name, about) => [name, about?.name].filter(Boolean).join("-");

  // A button with data-csv, in a .table-box, saves the table beside it under that name.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-csv]");
    const found = button?.closest(".table-box")?.querySelector("table");
    if (!found) return;
    const cell = (td) => td.dataset.value ?? td.innerText.trim().replace(/^\u2212(?=[\d.])/, "-"); // a proper minus sign is no number elsewhere
    const about = { line: button.dataset.about, name: button.dataset.of };
    download(Array.from(found.rows, (row) => Array.from(row.cells, cell)), button.dataset.csv, about);
  });

  window.playgroundTables = { bare, download, grid, named, table };
})();
