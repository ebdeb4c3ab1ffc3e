// The timeline: attempts in as few rows as they need (no library: src/report/README.md).

/// How long an attempt took; one that goes on: until now. Times are the server's.
const duration = (data, attempt) => attempt.e && isRunning(data.run.status) ? Math.max(0, data.now() - data.run.started - attempt.t) : attempt.d;
const isRunning = (status) => status === "running" || status === "unknown";

/// At most eight times from 0 to `end`, in steps that people count in.
function roundTimes(end) {
  const steps = [1, 2, 5].flatMap((n) => [n, n * 10, n * 100]).concat([1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * 1000)).sort((a, b) => a - b);
  let step = steps.find((one) => end / one < 8) || 86400000;
  while (end / step >= 8) step *= 2;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
}

function drawTimeline(data, into) {
  const all = [], attempts = data.steps.reduce((n, step) => n + (step.a || []).length, 0);
  // Many attempts mostly wait for a job slot, and the picture would show nothing else.
  const showsWaiting = attempts <= 200;
  for (const step of data.steps) for (const attempt of step.a || []) {
    const took = duration(data, attempt), [waiting, preparing, running, storing, transfers] = attempt.h || [0, 0, took, 0];
    const parts = [["preparing", preparing], ["transfers", transfers || 0], ["running", running], ["storing", storing]];
    if (showsWaiting) parts.unshift(["waiting", waiting]);
    all.push({ step, attempt, from: Math.max(0, attempt.t - (showsWaiting ? waiting : 0)), to: attempt.t + Math.max(took, 1), parts });
  }
  if (!all.length) return false;
  const most = 2000, legend = el("div", { class: "legend" }), used = new Set();
  into.append(legend);
  if (all.length > most) {
    all.sort((a, b) => (b.to - b.from) - (a.to - a.from));
    into.append(el("p", { class: "dim" }, "The longest " + count(most, "attempt") + " of " + grouped(all.length) + "; their waiting is left out."));
    all.length = most;
  } else if (!showsWaiting) {
    into.append(el("p", { class: "dim" }, "Waiting is left out."));
  }
  all.sort((a, b) => a.from - b.from);
  const end = Math.max(...all.map((one) => one.to), 1), width = drawingWidth(into), ends = [];
  for (const one of all) {
    let row = ends.findIndex((free) => free <= one.from);
    if (row < 0) row = ends.length;
    ends[row] = one.to;
    one.row = row;
  }
  const rowHeight = ends.length > 100 ? 6 : 20;
  const top = 22, height = top + ends.length * (rowHeight + 2) + 6, x = (ms) => ms / end * (width - 20) + 10;
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Timeline of " + count(all.length, "attempt") + " in " + time(end) });
  const ticks = roundTimes(end);
  ticks.forEach((ms, i) => drawing.append(svg("line", { class: "grid", x1: x(ms), x2: x(ms), y1: top - 4, y2: height }),
    svg("text", { class: "small", x: x(ms), y: 13, "text-anchor": i === 0 ? "start" : x(ms) > width - 40 ? "end" : "middle" }, time(ms).replace(".0 s", " s").replace(" m 00 s", " m").replace(" h 00 m", " h"))));
  for (const one of all) {
    const y = top + one.row * (rowHeight + 2), bar = svg("g", {}, svg("title", {}, one.step.n + ": " + one.parts.filter((part) => part[1]).map((part) => part[0] + " " + time(part[1])).join(", ")));
    const longest = [...one.parts].sort((a, b) => b[1] - a[1] || (b[0] === "running") - (a[0] === "running"))[0];
    const last = one.parts.findLast((part) => part[1]) || longest;
    let at = one.from;
    for (const part of one.parts) {
      const [what, ms] = part, wide = x(at + ms) - x(at);
      if (wide >= 0.5 || part === longest) { // a part that nobody could see is left out, so that thousands are drawn fast
        const kind = what === "running" ? (one.attempt.m || one.attempt.x ? "failed" : one.attempt.e ? "running" : "succeeded") : what;
        used.add(kind === "succeeded" ? "running" : kind === "running" ? "running now" : kind);
        bar.append(svg("rect", { class: "f-" + kind, x: x(at).toFixed(1), y, width: Math.max(1, wide - (part === last ? 1 : 0)).toFixed(1), height: rowHeight })); // a gap before the next attempt in the row
      }
      at += ms;
    }
    const label = clean(one.step.n);
    if (rowHeight > 12 && x(one.to) - x(one.from) > label.length * 7 + 8) bar.append(svg("text", { x: x(one.from) + 4, y: y + 14, class: "on" }, label));
    drawing.append(bar);
  }
  const kinds = ["waiting", "preparing", "transfers", "running", "running now", "storing", "failed"].filter((one) => used.has(one));
  legend.append(...kinds.map((one) => el("span", {}, el("span", { class: "key k-" + one.replace(" ", "-") }), one)));
  into.append(scroller("Drawing of the timeline", drawing));
  return true;
}
