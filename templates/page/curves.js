// Curves: a chart for each metric with the curves of all instances and runs (no library: src/report/README.md).
const palette = ["#2f7ed8", "#d1620a", "#23924a", "#b04fc4", "#d63a4a", "#0f8a8a", "#8a7400", "#7a7a7a"];
const foldNames = /^(fold|seed|repeat|replicate|split|cv)s?$/i;
const isNumber = (value) => typeof value === "number" && isFinite(value);
const textOf = (value) => value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : figure(value);
// A colour between blue and yellow, which both themes show; `at` is from 0 to 1.
const shade = (at) => `hsl(${Math.round(230 - 185 * at)} 65% ${Math.round(58 - 16 * at)}%)`;

/// Returns the unit at the end of a metric's name; empty if there is none.
const unitOf = (metric) => ({ ms: "ms", s: "s", sec: "s", seconds: "s", bytes: "B", mb: "MB", gb: "GB", percent: "%", pct: "%" })[(metric.match(/[_. ]([a-z]+)$/) || [])[1]] || "";

/// Returns true for numbers that are spread over powers of ten, as learning rates are: most are far below the highest.
const arePowers = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b), low = sorted[0], high = sorted[sorted.length - 1];
  return low > 0 && high / low >= 1000 && sorted[sorted.length >> 1] * 5 < high;
};

/// Returns at most `most` round values from `low` to `high`.
function roundValues(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most, ten = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((one) => one * ten >= rough) * ten, values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) values.push(+(i * step).toPrecision(12));
  return values;
}
/// Returns the powers of ten from `low` to `high`; if they are few, also their multiples by 2 and 5.
function roundPowers(low, high) {
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high)), every = Math.ceil((to - from) / 8), values = [];
  for (let power = from; power <= to; ++power) if ((power - from) % every === 0) for (const one of to - from < 3 ? [1, 2, 5] : [1]) values.push(+(one * 10 ** power).toPrecision(3));
  return values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

/// Returns round times from `from` to `to`, all in seconds.
function roundTimesFrom(from, to) {
  const step = (roundTimes((to - from) * 1000)[1] || (to - from) * 1000) / 1000, values = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to; ++i) values.push(i * step);
  return values;
}

/// Returns the names of the parameters that differ among the curves or rows, in their order.
function varying(rows) {
  const values = new Map();
  for (const { p } of rows) for (const [key, value] of Object.entries(p || {})) { if (!values.has(key)) values.set(key, new Set()); values.get(key).add(textOf(value)); }
  return [...values.keys()].filter((key) => values.get(key).size > 1 || rows.some(({ p }) => !p || !(key in p)));
}

/// Converts texts to numbers in parameters for which other rows have numbers: a matrix from a table keeps some of its fields as they are written.
function withNumericParameters(rows) {
  const numeric = new Set(rows.flatMap(({ p }) => Object.keys(p || {}).filter((key) => isNumber(p[key]))));
  const isText = (value) => typeof value === "string" && /^-?(0|[1-9]\d*)(\.\d+)?(e[-+]?\d+)?$/i.test(value);
  return rows.map((row) => Object.entries(row.p || {}).some(([key, value]) => numeric.has(key) && isText(value))
    ? { ...row, p: Object.fromEntries(Object.entries(row.p).map(([key, value]) => [key, numeric.has(key) && isText(value) ? Number(value) : value])) } : row);
}

/// Returns the parameter that explains most of the differences between the curves' last values; null if there is none. Many numbers count as eight ranges.
function tellingParameter(curves, parameters) {
  const [metric] = byRank(new Set(curves.map((one) => one.metric))), ends = curves.filter((one) => one.metric === metric && isNumber(one.last)), meanOf = (list) => list.reduce((sum, one) => sum + one.last, 0) / list.length;
  let telling = null, most = 0;
  for (const key of parameters) {
    const groups = new Map(), all = meanOf(ends), numbers = [...new Set(ends.map((one) => (one.p || {})[key]))].sort((a, b) => a - b), isRange = numbers.length > palette.length && numbers.every(isNumber), places = new Map(numbers.map((value, i) => [value, i]));
    const groupOf = (value) => isRange ? Math.floor(places.get(value) * palette.length / numbers.length) : textOf(value);
    for (const one of ends) { const value = groupOf((one.p || {})[key]); if (!groups.has(value)) groups.set(value, []); groups.get(value).push(one); }
    const within = [...groups.values()].reduce((sum, list) => { const middle = meanOf(list); return sum + list.reduce((all, one) => all + (one.last - middle) ** 2, 0); }, 0);
    const between = [...groups.values()].reduce((sum, list) => sum + list.length * (meanOf(list) - all) ** 2, 0);
    const explained = between - (groups.size - 1) * within / Math.max(1, ends.length - groups.size); // less what random groups of this number would explain
    if (groups.size * 2 <= ends.length && explained > most) { most = explained; telling = key; }
  }
  return telling;
}

/// Returns the lines to draw: one for each curve, or for the mean of the curves that differ only in the parameter `choice.mean`.
function linesOf(curves, choice) {
  const names = varying(curves).filter((key) => key !== choice.mean), runs = new Set(curves.map((one) => one.run)).size > 1, bases = new Set(curves.map((one) => one.step.split(".")[0])).size > 1;
  const labelOf = (one) => [runs && one.run, bases && one.step.split(".")[0], ...names.filter((key) => key in (one.p || {})).map((key) => key + "=" + textOf(one.p[key]))].filter(Boolean).join(", ") || one.step;
  const at = (point) => choice.x === "time" ? point[2] / 1000 : point[0];
  const smooth = (ys) => { // an exponential mean whose first values count no more than others
    let sum = 0, weight = 0;
    return !choice.smooth ? ys : ys.map((y) => { sum = sum * choice.smooth + y * (1 - choice.smooth); weight = weight * choice.smooth + 1 - choice.smooth; return sum / weight; });
  };
  const lines = curves.map((one) => {
    const points = one.curve.filter((point) => isNumber(point[1]) && (!choice.log || point[1] > 0));
    if (choice.x === "time") points.sort((a, b) => a[2] - b[2]);
    return { label: labelOf(one), of: [one], xs: points.map(at), ys: smooth(points.map((point) => point[1])), raw: points.map((point) => point[1]) };
  }).filter((line) => line.xs.length);
  if (!choice.mean) return lines;
  const groups = new Map();
  for (const line of lines) { const key = line.of[0].run + "\n" + line.label; if (!groups.has(key)) groups.set(key, []); groups.get(key).push(line); }
  return [...groups.values()].map((members) => members.length > 1 ? meanOf(members) : members[0]);
}

/// Returns the line's interpolated value at x; null outside of the line.
function valueAt(line, x) {
  let low = 0, high = line.xs.length - 1;
  if (!(x >= line.xs[0] && x <= line.xs[high])) return null;
  while (high - low > 1) { const middle = (low + high) >> 1; if (line.xs[middle] <= x) low = middle; else high = middle; }
  const span = line.xs[high] - line.xs[low];
  return span ? line.ys[low] + (line.ys[high] - line.ys[low]) * (x - line.xs[low]) / span : line.ys[high];
}

/// Returns the mean of lines, with the lowest and the highest of them as a band.
function meanOf(members) {
  let xs = [...new Set(members.flatMap((line) => line.xs))].sort((a, b) => a - b);
  if (xs.length > 300) xs = Array.from({ length: 300 }, (_, i) => xs[Math.round(i * (xs.length - 1) / 299)]);
  const mean = { label: members[0].label, of: members.flatMap((line) => line.of), xs: [], ys: [], raw: [], low: [], high: [] };
  for (const x of xs) {
    const values = members.map((line) => valueAt(line, x)).filter((value) => value !== null);
    if (!values.length) continue;
    mean.xs.push(x);
    mean.ys.push(values.reduce((sum, value) => sum + value, 0) / values.length);
    mean.low.push(Math.min(...values));
    mean.high.push(Math.max(...values));
  }
  mean.raw = mean.ys;
  return mean;
}

/// Colours the lines by a parameter, "run" or "line"; returns the legend: [text, colour].
function paint(lines, by) {
  const valueOf = (line) => by === "line" ? line.label : by === "run" ? line.of[0].run : (line.of[0].p || {})[by];
  const values = [...new Map(lines.map((line) => [textOf(valueOf(line)), valueOf(line)])).values()], numbers = values.filter(isNumber);
  if (numbers.length === values.length && values.length > palette.length) {
    const low = Math.min(...numbers), high = Math.max(...numbers), isLog = arePowers(numbers), scale = isLog ? Math.log : (value) => value;
    for (const line of lines) line.colour = shade((scale(valueOf(line)) - scale(low)) / (scale(high) - scale(low)));
    return [[figure(low), shade(0)], [figure(+(isLog ? Math.sqrt(low * high) : (low + high) / 2).toPrecision(3)), shade(0.5)], [figure(high), shade(1)]];
  }
  if (numbers.length === values.length) values.sort((a, b) => a - b);
  const places = new Map(values.map((value, i) => [textOf(value), i]));
  for (const line of lines) line.colour = palette[places.get(textOf(valueOf(line))) % palette.length];
  return values.map((value, i) => [textOf(value) || "none", palette[i % palette.length]]);
}

/// Makes a chart of one metric. `choice` has x, log, smooth, mean and colour; `load(from, to, by)` asks for more values of a part.
function curveChart(metric, choice, load) {
  const caption = el("figcaption", {}), key = el("div", { class: "legend" }), stage = el("div", { class: "stage" }), told = el("p", { class: "told", role: "status" }), values = el("div", {});
  const reset = el("button", { class: "plain", type: "button", hidden: "" }, "Show all"), table = el("details", { class: "gather" }, el("summary", {}, "Values of ", name(metric)), values);
  const node = el("figure", { class: "chart" }, caption, key, stage, told, el("div", { class: "chartbar" }, reset, table));
  let curves = [], fine = null, lines = [], zoom = null, drawn = null, asked = 0, cursor = null;
  const timeText = (seconds) => time(Math.max(0, seconds) * 1000).replace(".0 s", " s").replace(" m 00 s", " m").replace(" h 00 m", " h");
  const xText = (x) => choice.x === "time" ? timeText(x) : figure(x);

  const draw = () => {
    const width = Math.max(280, stage.clientWidth || 600), height = Math.min(320, Math.max(200, Math.round(width * 0.45))), left = 58, right = 10, top = 8, bottom = 36;
    lines = linesOf(fine || curves, choice);
    drawn = null;
    caption.replaceChildren(el("strong", {}, name(metric)), unitOf(metric) && " in " + unitOf(metric), el("span", { class: "dim" }, " \u00b7 " + count(curves.length, "curve") + ", " + count(curves.reduce((sum, one) => sum + one.points, 0), "value")));
    told.textContent = "";
    if (!lines.length) { key.replaceChildren(); stage.replaceChildren(el("p", { class: "dim" }, choice.log ? "No value is above zero." : "No value is a number.")); return; }
    const legend = paint(lines, choice.colour), most = 12;
    key.replaceChildren(...(lines.length > 1 ? legend.slice(0, most).map(([text, colour]) => el("span", {}, svg("svg", { width: 12, height: 12, "aria-hidden": "true", class: "swatch" }, svg("rect", { width: 12, height: 12, fill: colour })), name(choice.colour === "run" || choice.colour === "line" ? text : choice.colour + " " + text))) : []), legend.length > most && lines.length > 1 ? el("span", {}, "and " + (legend.length - most) + " more") : "");
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const line of lines) for (const x of line.xs) { if (x < x0) x0 = x; if (x > x1) x1 = x; }
    if (zoom) [x0, x1] = zoom;
    for (const line of lines) line.xs.forEach((x, i) => { if (x < x0 || x > x1) return; const low = line.low ? line.low[i] : line.ys[i], high = line.high ? line.high[i] : line.ys[i]; if (low < y0) y0 = low; if (high > y1) y1 = high; });
    if (!(y0 <= y1)) { y0 = 0; y1 = 1; }
    if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
    if (y0 === y1) { const by = Math.abs(y0) * 0.1 || 0.5; y0 -= choice.log ? 0 : by; y1 += by; if (choice.log) y0 /= 2; }
    const log = choice.log ? Math.log10 : (value) => value, low = log(y0), high = log(y1), pad = (high - low) * 0.04;
    const x = (value) => left + (value - x0) / (x1 - x0) * (width - left - right), y = (value) => height - bottom - (log(value) - low + pad) / (high - low + 2 * pad) * (height - top - bottom);
    const hadFocus = stage.contains(document.activeElement), was = stage.querySelector(".above *") ? cursor : null;
    const clip = "clip" + (++curveChart.count), drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "curvechart", role: "group", tabindex: "0",
      "aria-label": clean(metric) + ": " + count(lines.length, lines[0].low ? "mean" : "curve") + " from " + figure(y0) + " to " + figure(y1) + "; arrows read values, plus and minus zoom, the table has them" });
    for (const value of choice.log ? roundPowers(y0, y1) : roundValues(y0, y1, 5)) drawing.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), svg("text", { class: "small", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, figure(+value.toPrecision(4))));
    const ticks = choice.x === "time" ? roundTimesFrom(x0, x1) : roundValues(x0, x1, Math.max(2, Math.floor(width / 90))), every = Math.ceil(ticks.length / Math.max(2, Math.floor(width / 90)));
    ticks.forEach((value, i) => { if (i % every === 0) drawing.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom }), svg("text", { class: "small", x: x(value), y: height - bottom + 15, "text-anchor": x(value) > width - 40 ? "end" : "middle" }, xText(value))); });
    drawing.append(svg("text", { class: "small", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, choice.x === "time" ? "time since the first value" : "training step"),
      svg("clipPath", { id: clip }, svg("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom })));
    const plot = svg("g", { "clip-path": `url(#${clip})` }), at = (px, py) => px.toFixed(1) + "," + py.toFixed(1);
    const faint = lines.length > 300 ? 0.25 : lines.length > 60 ? 0.5 : 1;
    for (const line of lines) {
      if (line.low) plot.append(svg("polygon", { fill: line.colour, "fill-opacity": lines.length > 12 ? 0.06 : 0.16, points: [...line.xs.map((one, i) => at(x(one), y(line.high[i]))), ...line.xs.map((one, i) => at(x(one), y(line.low[i]))).reverse()].join(" ") }));
      if (choice.smooth && lines.length <= 8 && !line.low) plot.append(svg("polyline", { class: "line faint", stroke: line.colour, points: line.xs.map((one, i) => at(x(one), y(line.raw[i]))).join(" ") }));
      plot.append(line.xs.length > 1 ? svg("polyline", { class: "line", stroke: line.colour, "stroke-opacity": faint, points: line.xs.map((one, i) => at(x(one), y(line.ys[i]))).join(" ") }) : svg("circle", { cx: x(line.xs[0]), cy: y(line.ys[0]), r: 3, fill: line.colour }));
      if (choice.x !== "time" && lines.length <= 20) for (const one of line.of) for (const [restart, attempt] of one.restarts || []) if (restart >= x0 && restart <= x1) plot.append(svg("line", { class: "restart", x1: x(restart), x2: x(restart), y1: top, y2: height - bottom }, svg("title", {}, "attempt " + attempt + " of " + one.step)));
    }
    drawing.append(plot);
    // The line that is pointed at is drawn in a layer above, so that thousands of lines need not be drawn again.
    const above = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "above", "aria-hidden": "true" });
    stage.replaceChildren(drawing, above);
    drawn = { x, y, x0, x1, y0, y1, left, right, top, bottom, width, height, above };
    reset.hidden = !zoom;
    listen(drawing);
    if (hadFocus) drawing.focus();
    if (was && lines[was.line]) point(lines[was.line], was.x);
    if (table.open) fillTable();
  };

  const point = (line, value) => { // shows a line and its value at an x
    const y = valueAt(line, value);
    if (y === null || !drawn) return;
    const { x, above, top, bottom, height, width } = drawn;
    cursor = { line: lines.indexOf(line), x: value };
    above.replaceChildren(svg("line", { class: "restart", x1: x(value), x2: x(value), y1: top, y2: height - bottom }),
      ...(line.xs.length > 1 ? [svg("polyline", { class: "line pointed", stroke: line.colour, points: line.xs.map((one, i) => [one, line.ys[i]]).filter(([one]) => one >= drawn.x0 && one <= drawn.x1).map(([one, v]) => x(one).toFixed(1) + "," + drawn.y(v).toFixed(1)).join(" ") })] : []),
      svg("circle", { cx: x(value), cy: drawn.y(y), r: 4, fill: line.colour, class: "point" }));
    const others = lines.length <= 8 ? lines.filter((one) => one !== line).map((one) => [one, valueAt(one, value)]).filter(([, v]) => v !== null).map(([one, v]) => one.label + ": " + figure(+v.toPrecision(5))) : [];
    told.replaceChildren(el("strong", {}, name(line.label), ": " + figure(+y.toPrecision(6))), " at " + (choice.x === "time" ? "" : "step ") + xText(value) + (line.low ? ", mean of " + line.of.length : ""), others.length ? el("span", { class: "dim" }, " \u00b7 ", name(others.join(" \u00b7 "))) : "");
  };
  const nearest = (px, py) => {
    const value = drawn.x0 + (px - drawn.left) / (drawn.width - drawn.left - drawn.right) * (drawn.x1 - drawn.x0);
    let best = null, far = Infinity;
    for (const line of lines) {
      const inside = Math.min(Math.max(value, line.xs[0]), line.xs[line.xs.length - 1]), y = valueAt(line, inside);
      const gap = y === null ? Infinity : Math.hypot(drawn.y(y) - py, (drawn.x(inside) - px) * 2);
      if (gap < far) { far = gap; best = [line, inside]; }
    }
    if (!best) return null;
    const [line, inside] = best; // the reported value that is nearest to it follows
    return [line, line.xs.reduce((near, one) => Math.abs(one - inside) < Math.abs(near - inside) ? one : near, line.xs[0])];
  };
  const zoomTo = (from, to) => {
    zoom = from === null ? null : [from, to];
    fine = null;
    draw();
    if (!zoom || !load) return;
    const question = ++asked, unit = choice.x === "time" ? 1000 : 1;
    load(Math.floor(from * unit), Math.ceil(to * unit), choice.x).then((found) => { if (found && question === asked && zoom) { fine = found; draw(); } });
  };
  const listen = (drawing) => {
    const place = (event) => { const box = drawing.getBoundingClientRect(); return [(event.clientX - box.left) * drawn.width / box.width, (event.clientY - box.top) * drawn.height / box.height]; };
    let from = null;
    drawing.addEventListener("pointermove", (event) => {
      const [px, py] = place(event), found = nearest(px, py);
      if (from !== null) drawn.above.replaceChildren(svg("rect", { class: "chosen", x: Math.min(from, px), y: drawn.top, width: Math.abs(px - from), height: drawn.height - drawn.top - drawn.bottom }));
      else if (found) point(...found);
    });
    drawing.addEventListener("pointerleave", () => { if (from === null) drawn.above.replaceChildren(); });
    drawing.addEventListener("pointerdown", (event) => { if (event.button || event.pointerType === "touch") return; from = place(event)[0]; drawing.setPointerCapture(event.pointerId); });
    drawing.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const value = (px) => drawn.x0 + (Math.min(Math.max(px, drawn.left), drawn.width - drawn.right) - drawn.left) / (drawn.width - drawn.left - drawn.right) * (drawn.x1 - drawn.x0), ends = [value(from), value(place(event)[0])].sort((a, b) => a - b), wide = Math.abs(place(event)[0] - from) > 6;
      from = null;
      if (wide) zoomTo(...ends);
    });
    drawing.addEventListener("dblclick", () => zoomTo(null));
    drawing.addEventListener("keydown", (event) => {
      const at = cursor && lines[cursor.line] ? cursor : { line: 0, x: lines[0].xs[0] }, line = lines[at.line], i = line.xs.findIndex((one) => one >= at.x), middle = at.x, half = (drawn.x1 - drawn.x0) / 4;
      const act = { ArrowRight: () => point(line, line.xs[Math.min(line.xs.length - 1, cursor ? i + 1 : i)]), ArrowLeft: () => point(line, line.xs[Math.max(0, i - 1)]),
        ArrowDown: () => point(lines[(at.line + 1) % lines.length], at.x), ArrowUp: () => point(lines[(at.line + lines.length - 1) % lines.length], at.x),
        "+": () => zoomTo(middle - half, middle + half), "-": () => zoomTo(middle - 4 * half, middle + 4 * half), 0: () => zoomTo(null), Escape: () => zoomTo(null) }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  };
  const fillTable = () => {
    const most = 200, ends = (line) => [line.raw[0], Math.min(...line.raw), Math.max(...line.raw), line.raw[line.raw.length - 1]];
    values.replaceChildren(scroller("Values of " + metric, el("table", {}, el("thead", {}, el("tr", {}, ...["Curve", "First", "Lowest", "Highest", "Last", "Values"].map((text, i) => el("th", { scope: "col", class: i ? "number" : null }, text)))),
      el("tbody", {}, ...lines.slice(0, most).map((line) => el("tr", {}, el("td", { class: "name" }, name(line.label)), ...ends(line).map((value) => el("td", { class: "number" }, figure(value))), el("td", { class: "number" }, grouped(line.of.reduce((sum, one) => sum + one.points, 0)))))))), lines.length > most ? el("p", { class: "dim" }, "The first " + most + " of " + grouped(lines.length) + ".") : "");
  };
  table.addEventListener("toggle", () => { if (table.open) fillTable(); });
  reset.addEventListener("click", () => zoomTo(null));
  let width = 0;
  new ResizeObserver(() => { if (node.isConnected && curves.length && Math.abs(stage.clientWidth - width) > 1) { width = stage.clientWidth; draw(); } }).observe(node);
  return { node, show(now) { curves = now; if (!zoom) fine = null; width = stage.clientWidth; draw(); }, draw, unzoom() { zoom = fine = null; } };
}
curveChart.count = 0;

/// The charts, and the choices that hold for all of them. `load(metric, range)` returns a promise of curves; `finer` is true if `load` has more values for a part.
function curvesView(into, load, { finer = false, query = null } = {}) {
  const most = 8, charts = new Map(), grid = el("div", { class: "charts" }), more = el("button", { class: "more", type: "button" }, "Show more charts");
  const choice = { colour: query && query.get("colour") || "", x: query && query.get("x") === "time" ? "time" : "step", log: !!query && query.get("log") === "1", smooth: Math.min(0.99, Math.max(0, query && Number(query.get("smooth")) || 0)), mean: query && query.get("mean") !== null ? query.get("mean").replace(/^nothing$/, "") : null };
  const select = (id, options) => el("select", { id }, ...options.map(([value, text]) => el("option", { value }, text)));
  const colour = select("curve-colour", []), mean = select("curve-mean", []), x = select("curve-x", [["step", "training step"], ["time", "time"]]);
  const log = el("input", { type: "checkbox", id: "curve-log" }), smooth = el("input", { type: "range", id: "curve-smooth", min: 0, max: 0.99, step: 0.01, value: choice.smooth });
  log.checked = choice.log;
  x.value = choice.x;
  const controls = el("div", { class: "controls" }, el("label", {}, "Colour by", colour), el("label", {}, "Averaged over", mean), el("label", {}, "Horizontal", x), el("label", {}, "Smoothing", smooth), el("label", { class: "check" }, log, " Logarithmic"));
  into.append(controls, el("p", { class: "dim hover" }, "Point at a curve for its values; drag across a part to enlarge it."), grid, more);
  let names = [], shown = most, all = [], isChosen = !!choice.colour;
  const fillChoices = () => {
    const parameters = varying(all), runs = new Set(all.map((one) => one.run)).size > 1;
    const options = [...(runs ? [["run", "run"]] : []), ...parameters.map((key) => [key, clean(key)]), ["line", "curve"]], means = [["", "nothing"], ...parameters.map((key) => [key, clean(key)])];
    const set = (node, list, value) => { node.replaceChildren(...list.map(([one, text]) => el("option", { value: one }, text))); node.value = list.some(([one]) => one === value) ? value : list[0][0]; return node.value; };
    if (choice.mean === null) choice.mean = parameters.find((key) => foldNames.test(key)) || "";
    choice.mean = set(mean, means, choice.mean);
    const kinds = new Set(all.map((one) => JSON.stringify([one.step.split(".")[0], ...parameters.filter((key) => key !== choice.mean).map((key) => (one.p || {})[key])]))).size;
    choice.colour = set(colour, options, isChosen && choice.colour || (runs ? "run" : kinds <= palette.length ? "line" : tellingParameter(all, parameters.filter((key) => key !== choice.mean)) || parameters.find((key) => key !== choice.mean) || "line"));
  };
  const remember = () => { if (query) for (const [key, value] of [["colour", isChosen && choice.colour], ["mean", choice.mean || "nothing"], ["x", choice.x === "time" && "time"], ["log", choice.log && "1"], ["smooth", choice.smooth || ""]]) remembered(key, value); };
  const redraw = () => { for (const chart of charts.values()) chart.draw(); };
  const changed = () => {
    const unzoom = choice.x !== x.value;
    isChosen ||= colour.value !== choice.colour;
    Object.assign(choice, { colour: colour.value, mean: mean.value, x: x.value, log: log.checked, smooth: Number(smooth.value) });
    fillChoices();
    if (unzoom) for (const chart of charts.values()) chart.unzoom();
    remember();
    redraw();
  };
  for (const node of [colour, mean, x, log]) node.addEventListener("change", changed);
  smooth.addEventListener("input", changed);
  const update = async () => {
    more.hidden = names.length <= shown;
    for (const metric of names.slice(0, shown)) {
      const loaded = await load(metric);
      if (!loaded) continue;
      const curves = withNumericParameters(loaded);
      if (!curves.some((one) => one.curve.length > 1)) continue;
      if (!charts.has(metric)) { const chart = curveChart(metric, choice, finer ? (from, to, by) => load(metric, { from, to, by }) : null); charts.set(metric, chart); grid.append(chart.node); }
      all = [...all.filter((one) => one.metric !== metric), ...curves.map((one) => Object.assign(one, { metric }))];
      fillChoices();
      charts.get(metric).show(curves);
    }
    controls.hidden = !charts.size;
  };
  more.addEventListener("click", () => { shown += most; update(); });
  let isBusy = false, again = false;
  return {
    async show(now) {
      names = byRank(now);
      if (isBusy) { again = true; return; } // at most one more, and a pause, however often values come
      isBusy = true;
      for (again = true; again && into.isConnected;) { again = false; await update(); if (names.length) await new Promise((done) => setTimeout(done, charts.size && finer ? 1500 : 0)); }
      isBusy = false;
    },
  };
}
