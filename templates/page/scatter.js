// A chart of rows: two columns as points, three and more as parallel axes (no library: src/report/README.md).
// A row has label, values and colour or status, and perhaps href; `open` follows a link within the page.
function chartOf(columns, rows, width, { noun = "row", open = null } = {}) {
  const box = el("div", {});
  if (columns.length < 2) { box.append(el("p", { class: "dim" }, "Choose two columns for a scatter plot, or more for parallel axes.")); return box; }
  const height = 360, pad = 56;
  if (columns.length > 2) width = Math.max(width, columns.length * 96); // a name fits between two axes
  const axes = columns.map((column, i) => {
    const values = rows.map((row) => row.values[i]).filter((value) => value !== null && value !== undefined && typeof value !== "object");
    const numbers = values.filter((value) => typeof value === "number");
    if (values.length && numbers.length === values.length) {
      const low = Math.min(...numbers), high = Math.max(...numbers), isLog = arePowers(numbers), scale = isLog ? Math.log : (value) => value;
      const at = (value) => low === high ? 0.5 : (scale(value) - scale(low)) / (scale(high) - scale(low));
      return { column, at: (value) => typeof value !== "number" ? null : at(value), marks: low === high ? [[0.5, figure(low)]] : (isLog ? roundPowers(low, high) : roundValues(low, high, 5)).map((value) => [at(value), figure(+value.toPrecision(6))]) };
    }
    const kinds = [...new Set(values.map(String))].sort().slice(0, 24); // texts have places in order
    return { column, at: (value) => kinds.includes(String(value)) ? kinds.indexOf(String(value)) / Math.max(1, kinds.length - 1) : null, marks: kinds.map((kind, i) => [i / Math.max(1, kinds.length - 1), kind.length > 14 ? kind.slice(0, 13) + "\u2026" : kind]) };
  });
  const places = rows.map((row) => axes.map((axis, i) => axis.at(row.values[i])));
  const shown = rows.filter((row, i) => places[i].every((at) => at !== null)).length;
  const title = (row) => svg("title", {}, row.label + ": " + columns.map((column, i) => column + " = " + shownValue(column, row.values[i])).join(", "));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart", role: "group", "aria-label": (columns.length === 2 ? "Scatter plot of " : "Parallel axes of ") + clean(columns.join(", ")) + " of " + count(shown, noun) + "; the table has the values" });
  const anchor = (row, ...children) => {
    if (!row.href) return svg("g", {}, title(row), ...children);
    const node = svg("a", { href: row.href, tabindex: "-1", "aria-label": clean(row.label) }, title(row), ...children);
    node.addEventListener("click", (event) => { if (!open || event.ctrlKey || event.metaKey || event.shiftKey) return; event.preventDefault(); open(row.href); });
    return node;
  };
  const y = (at) => height - pad + 10 - at * (height - pad - 20);
  if (columns.length === 2) {
    const x = (at) => pad + 20 + at * (width - pad - 50);
    for (const [at, text] of axes[0].marks) drawing.append(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: y(0), y2: y(1) }), svg("text", { class: "small", x: x(at), y: height - 26, "text-anchor": "middle" }, text));
    for (const [at, text] of axes[1].marks) drawing.append(svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(at), y2: y(at) }), svg("text", { class: "small", x: x(0) - 8, y: y(at) + 4, "text-anchor": "end" }, text));
    drawing.append(svg("text", { x: x(0.5), y: height - 6, "text-anchor": "middle" }, columns[0]), svg("text", { x: 12, y: y(0.5), "text-anchor": "middle", transform: `rotate(-90 12 ${y(0.5)})` }, columns[1]));
    rows.forEach((row, i) => { if (places[i].every((at) => at !== null)) drawing.append(anchor(row, svg("circle", { class: "point" + (row.status ? " f-" + row.status : ""), fill: row.colour, cx: x(places[i][0]), cy: y(places[i][1]), r: 5 }))); });
  } else {
    const x = (i) => pad + 10 + i / (columns.length - 1) * (width - 2 * pad - 20);
    rows.slice(0, 1000).forEach((row, i) => {
      if (places[i].every((at) => at !== null)) drawing.append(anchor(row, svg("polyline", { class: "parallel" + (row.status ? " l-" + row.status : ""), stroke: row.colour, points: places[i].map((at, k) => x(k) + "," + y(at)).join(" ") })));
    });
    axes.forEach((axis, i) => {
      drawing.append(svg("line", { class: "axis", x1: x(i), x2: x(i), y1: y(0), y2: y(1) }), svg("text", { x: x(i), y: height - 8, "text-anchor": "middle" }, axis.column.length > 24 ? axis.column.slice(0, 23) + "\u2026" : axis.column));
      for (const [at, text] of axis.marks) drawing.append(svg("text", { class: "small on", x: x(i) + 6, y: y(at) + 4 }, text));
    });
  }
  box.append(scroller("Chart of " + noun + "s", drawing), el("p", { class: "dim" }, count(shown, noun) + (shown < rows.length ? " of " + grouped(rows.length) + "; the others lack a value." : ".")));
  return box;
}

const shownValue = (column, value) => {
  if (value === null || value === undefined) return "";
  if (column === "usage.memory" || column === "usage.read" || column === "usage.written") return bytes(value);
  if (column === "run.commit") return String(value).slice(0, 12);
  return typeof value === "object" ? JSON.stringify(value) : figure(value);
};
