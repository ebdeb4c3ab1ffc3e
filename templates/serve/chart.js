// Two values of runs as points, three and more as parallel lines; each run is a link (no library: src/report/README.md).
function chartOf(columns, runs, width) {
  const box = el("div", {});
  if (columns.length < 2) { box.append(el("p", { class: "dim" }, "Choose two columns for a scatter plot, or more for parallel axes.")); return box; }
  const height = 360, pad = 56;
  const axes = columns.map((column, i) => {
    const values = runs.map((run) => run.values[i]).filter((value) => value !== null && value !== undefined && typeof value !== "object");
    const numbers = values.filter((value) => typeof value === "number");
    if (values.length && numbers.length === values.length) {
      const low = Math.min(...numbers), high = Math.max(...numbers);
      return { column, at: (value) => typeof value !== "number" ? null : low === high ? 0.5 : (value - low) / (high - low), marks: low === high ? [[0.5, figure(low)]] : [0, 0.25, 0.5, 0.75, 1].map((at) => [at, figure(+(low + (high - low) * at).toPrecision(3))]) };
    }
    const kinds = [...new Set(values.map(String))].sort().slice(0, 24); // texts have places in order
    return { column, at: (value) => kinds.includes(String(value)) ? kinds.indexOf(String(value)) / Math.max(1, kinds.length - 1) : null, marks: kinds.map((kind, i) => [i / Math.max(1, kinds.length - 1), kind.length > 14 ? kind.slice(0, 13) + "\u2026" : kind]) };
  });
  const places = runs.map((run) => axes.map((axis, i) => axis.at(run.values[i])));
  const shown = runs.filter((run, i) => places[i].every((at) => at !== null)).length;
  const title = (run) => svg("title", {}, run.id + ": " + columns.map((column, i) => column + " = " + shownValue(column, run.values[i])).join(", "));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart", role: "group", "aria-label": (columns.length === 2 ? "Scatter plot of " : "Parallel axes of ") + columns.join(", ") + " of " + count(shown, "run") + "; the table has the values" });
  const anchor = (run, ...children) => {
    const node = svg("a", { href: "/run/" + run.id, tabindex: "-1", "aria-label": run.id }, title(run), ...children);
    node.addEventListener("click", (event) => { if (event.ctrlKey || event.metaKey || event.shiftKey) return; event.preventDefault(); go("/run/" + run.id); });
    return node;
  };
  const y = (at) => height - pad + 10 - at * (height - pad - 20);
  if (columns.length === 2) {
    const x = (at) => pad + 20 + at * (width - pad - 50);
    for (const [at, text] of axes[0].marks) drawing.append(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: y(0), y2: y(1) }), svg("text", { class: "small", x: x(at), y: height - 26, "text-anchor": "middle" }, text));
    for (const [at, text] of axes[1].marks) drawing.append(svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(at), y2: y(at) }), svg("text", { class: "small", x: x(0) - 8, y: y(at) + 4, "text-anchor": "end" }, text));
    drawing.append(svg("text", { x: x(0.5), y: height - 6, "text-anchor": "middle" }, columns[0]), svg("text", { x: 12, y: y(0.5), "text-anchor": "middle", transform: `rotate(-90 12 ${y(0.5)})` }, columns[1]));
    runs.forEach((run, i) => { if (places[i].every((at) => at !== null)) drawing.append(anchor(run, svg("circle", { class: "point f-" + run.status, cx: x(places[i][0]), cy: y(places[i][1]), r: 5 }))); });
  } else {
    const x = (i) => pad + 10 + i / (columns.length - 1) * (width - 2 * pad - 20);
    runs.slice(0, 500).forEach((run, i) => {
      if (places[i].every((at) => at !== null)) drawing.append(anchor(run, svg("polyline", { class: "parallel l-" + run.status, points: places[i].map((at, k) => x(k) + "," + y(at)).join(" ") })));
    });
    axes.forEach((axis, i) => {
      drawing.append(svg("line", { class: "axis", x1: x(i), x2: x(i), y1: y(0), y2: y(1) }), svg("text", { x: x(i), y: height - 8, "text-anchor": "middle" }, axis.column));
      for (const [at, text] of axis.marks) drawing.append(svg("text", { class: "small on", x: x(i) + 6, y: y(at) + 4 }, text));
    });
  }
  box.append(scroller("Chart of runs", drawing), el("p", { class: "dim" }, count(shown, "run") + (shown < runs.length ? " of " + grouped(runs.length) + "; the others lack a value." : ".")));
  return box;
}
