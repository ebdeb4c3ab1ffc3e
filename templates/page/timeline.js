// The timeline: a row for each step in the pipeline's order, its name beside it (no library: src/report/README.md).

/// Returns the milliseconds that an attempt took; for one that goes on, those until now by the server's clock.
const duration = (data, attempt) => attempt.e && isRunning(data.run.status) ? Math.max(0, data.now() - data.run.started - attempt.t) : attempt.d;
const isRunning = (status) => status === "running" || status === "unknown";

/// Returns at most eight round times from 0 to `end`, in milliseconds.
function roundTimes(end) {
  const steps = [1, 2, 5].flatMap((n) => [n, n * 10, n * 100]).concat([1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * 1000)).sort((a, b) => a - b);
  let step = steps.find((one) => end / one < 8) || 86400000;
  while (end / step >= 8) step *= 2;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
}
const shortTime = (ms) => time(ms).replace(".0 s", " s").replace(" m 00 s", " m").replace(" h 00 m", " h");

/// Returns the bars of attempts: from, to, and parts. The bar of a step's first attempt begins at the end of the step's needs, with the part `held back`.
function barsOf(data, path) {
  const bars = [], gaps = new Map(path.map((one) => [one.step, one.gap])), ends = new Map();
  for (const step of data.steps) if (step.a && step.a.length) ends.set(base(step), Math.max(ends.get(base(step)) || 0, endOf(data, step.a[step.a.length - 1])));
  const gapOf = (step, begin) => gaps.has(step) ? gaps.get(step) : Math.max(0, begin - Math.max(0, ...((data.declared[base(step)] || {}).needs || []).map((need) => ends.get(need) || 0)));
  for (const step of data.steps) (step.a || []).forEach((attempt, i) => {
    const parts = partsOf(data, step, attempt, i), took = duration(data, attempt), waiting = waitOf(attempt), gap = i === 0 ? gapOf(step, attempt.t - waiting) : 0;
    if (gap > 0) parts.unshift(["held back", gap]);
    bars.push({ step, attempt, from: Math.max(0, attempt.t - waiting - gap), to: attempt.t + Math.max(took, 1), parts });
  });
  return bars;
}

/// Gives each bar a row, and returns the rows' names. Each instance has a row of its own; packed, all instances of a step share as few rows as they need.
function placeBars(bars, isPacked) {
  const names = [], places = new Map(), sizes = new Map();
  if (!isPacked) {
    for (const bar of bars) { if (!places.has(bar.step.n)) { places.set(bar.step.n, names.length); names.push(bar.step.n); } bar.row = places.get(bar.step.n); }
    return names;
  }
  for (const bar of bars) { if (!places.has(base(bar.step))) places.set(base(bar.step), []); places.get(base(bar.step)).push(bar); }
  for (const [of, mine] of places) {
    const ends = [], first = names.length;
    for (const bar of mine.sort((a, b) => a.from - b.from)) {
      const free = ends.findIndex((end) => end <= bar.from), lane = free < 0 ? ends.length : free;
      bar.row = first + lane;
      ends[lane] = bar.to;
    }
    sizes.set(of, new Set(mine.map((bar) => bar.step.n)).size);
    ends.forEach((end, lane) => names.push(lane ? "" : of + (sizes.get(of) > 1 ? " \u00d7 " + grouped(sizes.get(of)) : "")));
  }
  return names;
}

function drawTimeline(data, into) {
  const path = criticalPath(data), critical = new Set(path.map((one) => one.step));
  let bars = barsOf(data, path);
  if (!bars.length) return false;
  const most = 2000, named = 60, legend = el("div", { class: "legend" }), used = new Set(), attempts = bars.length;
  const isPacked = new Set(bars.map((bar) => bar.step.n)).size > named;
  into.append(legend);
  if (isPacked) { // the waits of thousands would hide all else
    for (const bar of bars) { bar.from = bar.attempt.t; bar.parts = bar.parts.filter(([kind]) => !kind.startsWith("waiting") && kind !== "held back"); }
    if (attempts > most) { const longest = new Set([...bars].sort((a, b) => (b.to - b.from) - (a.to - a.from)).slice(0, most)); bars = bars.filter((bar) => longest.has(bar)); }
    into.append(el("p", { class: "dim" }, (attempts > most ? "The longest " + grouped(most) + " of " : "") + count(attempts, "attempt") + ", those of a step in as few rows as they need, without their waits."));
  }
  const names = placeBars(bars, isPacked), rowCount = names.length, end = Math.max(...bars.map((bar) => bar.to), 1), width = drawingWidth(into, 320), rowHeight = !isPacked ? 20 : rowCount <= 24 ? 16 : rowCount <= 60 ? 10 : 6;
  const longest = Math.max(...names.map((one) => clean(one).length)), gutter = Math.min(Math.round(width * 0.3), longest * 6.5 + 16), letters = Math.floor((gutter - 12) / 6.5);
  const top = 22, height = top + rowCount * (rowHeight + 2) + 6, x = (ms) => ms / end * (width - gutter - 14) + gutter;
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Timeline of " + count(bars.length, "attempt") + " in " + time(end) + "; critical path: " + path.slice(0, 20).map((one) => clean(one.step.n)).join(", ") });
  const ticks = roundTimes(end), every = Math.ceil(ticks.length * 52 / (width - gutter));
  ticks.forEach((ms, i) => i % every === 0 && drawing.append(svg("line", { class: "grid", x1: x(ms), x2: x(ms), y1: top - 4, y2: height }),
    svg("text", { class: "small", x: x(ms), y: 13, "text-anchor": i === 0 ? "start" : x(ms) > width - 40 ? "end" : "middle" }, shortTime(ms))));
  const cut = (text) => text.length > letters ? text.slice(0, Math.ceil(letters / 2) - 1) + "\u2026" + text.slice(-Math.floor(letters / 2)) : text;
  const rowNames = names.map((one, row) => one && svg("text", { class: "rowname", x: gutter - 8, y: top + row * (rowHeight + 2) + Math.max(rowHeight * 0.75, 8), "text-anchor": "end" }, cut(clean(one))));
  for (const bar of bars) {
    const y = top + bar.row * (rowHeight + 2), label = clean(bar.step.n), isCritical = critical.has(bar.step), node = svg("g", isCritical ? { class: "critical" } : {}, svg("title", {}, label + ": " + bar.parts.filter((part) => part[1]).map((part) => part[0] + " " + time(part[1])).join(", ") + (isCritical ? "; on the critical path" : "")));
    if (!isPacked && rowNames[bar.row]) { node.append(rowNames[bar.row]); rowNames[bar.row] = null; }
    const main = [...bar.parts].sort((a, b) => b[1] - a[1] || (b[0] === "running") - (a[0] === "running"))[0], last = bar.parts.findLast((part) => part[1]) || main;
    let at = bar.from;
    for (const part of bar.parts) {
      const [what, ms] = part, wide = x(at + ms) - x(at);
      if (wide >= 0.5 || part === main) { // parts that are too narrow to be seen are left out, so that thousands are drawn fast
        const kind = what === "running" ? (bar.attempt.m || bar.attempt.x ? "failed" : bar.attempt.e && isRunning(data.run.status) ? "running now" : "running") : what;
        used.add(kind);
        node.append(svg("rect", { class: "t-" + kind.replaceAll(" ", "-"), x: x(at).toFixed(1), y, width: Math.max(1, wide - (part === last && isPacked ? 1 : 0)).toFixed(1), height: rowHeight })); // a gap before the next attempt in the row
      }
      at += ms;
    }
    if (isCritical) node.append(svg("rect", { class: "outline", x: x(bar.from).toFixed(1), y, width: Math.max(1, x(bar.to) - x(bar.from)).toFixed(1), height: rowHeight }));
    drawing.append(node);
  }
  drawing.append(...rowNames.filter(Boolean));
  const kinds = ["held back", ...Object.values(waitNames), "preparing", "cluster", "transfers", "running", "running now", "storing", "failed"].filter((one) => used.has(one));
  const swatch = (kind) => svg("svg", { width: 12, height: 12, class: "swatch", "aria-hidden": "true" }, svg("rect", { class: kind, x: 1, y: 1, width: 10, height: 10 }));
  legend.append(...kinds.map((one) => el("span", {}, swatch("t-" + one.replaceAll(" ", "-")), one)), critical.size ? el("span", {}, swatch("outline"), "critical path") : "");
  const frame = scroller("Drawing of the timeline", drawing);
  if (rowCount <= 60) frame.classList.add("tall");
  into.append(frame);
  if (path.length) into.append(drawPath(data, path, end));
  return true;
}
