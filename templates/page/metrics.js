// Metrics: curves, and a table of last values with a row for each step (no library: src/report/README.md).
function drawMetrics(data, into) {
  if (!data.metrics.length) return false;
  const curves = data.metrics.filter((metric) => (metric.curve || []).filter((point) => typeof point[1] === "number").length > 1);
  if (curves.length) {
    const grid = el("div", { class: "curves" });
    for (const metric of curves) {
      const points = metric.curve.filter((point) => typeof point[1] === "number"), xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
      const left = Math.min(...xs), right = Math.max(...xs), low = Math.min(...ys), high = Math.max(...ys), width = 300, height = 110;
      const x = (v) => 4 + (v - left) / (right - left || 1) * (width - 8), y = (v) => height - 6 - (v - low) / (high - low || 1) * (height - 12);
      grid.append(el("figure", {}, el("figcaption", {}, name(metric.step), " \u00b7 ", name(metric.name), " ", el("strong", {}, figure(metric.last))),
        svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": metric.name + ": " + count(metric.points, "value") + " from " + figure(low) + " to " + figure(high) + ", last " + figure(metric.last) },
          ...(metric.restarts || []).map(([at, attempt]) => svg("line", { class: "restart", x1: x(at).toFixed(1), x2: x(at).toFixed(1), y1: 0, y2: height }, svg("title", {}, "attempt " + attempt))),
          svg("polyline", { class: "curve", points: points.map((point) => x(point[0]).toFixed(1) + "," + y(point[1]).toFixed(1)).join(" ") })),
        el("div", { class: "dim" }, figure(low) + " \u2013 " + figure(high) + " \u00b7 " + count(metric.points, "value") + (metric.restarts || []).map(([at, attempt]) => " \u00b7 attempt " + attempt + " from " + at).join(""))));
    }
    into.append(grid);
  }
  // A row for each step, a column for each metric.
  const names = [...new Set(data.metrics.map((metric) => metric.name))].slice(0, 12), rows = new Map();
  for (const metric of data.metrics) { if (!rows.has(metric.step)) rows.set(metric.step, new Map()); rows.get(metric.step).set(metric.name, metric.last); }
  const body = el("tbody", {});
  for (const [step, values] of [...rows].slice(0, 500)) body.append(el("tr", {}, el("td", { class: "name" }, name(step)), ...names.map((one) => el("td", { class: "number" }, values.has(one) ? figure(values.get(one)) : ""))));
  into.append(scroller("Table of metrics", el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Step"), ...names.map((one) => el("th", { scope: "col", class: "number" }, name(one))))), body)));
  return true;
}
